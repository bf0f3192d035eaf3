"""Signs and verifies folders by the package model-signing, and judges skills by skills-ref: a request a line, an answer a line."""

import json
import pathlib
import sys

from model_signing import hashing, signing, verifying
from skills_ref.validator import validate


def how(request):
    made = hashing.Config().use_file_serialization(hashing_algorithm=request["algorithm"])
    return made.set_allow_symlinks(request["links"])


def answer(request):
    folder = pathlib.Path(request["folder"])
    if request["do"] == "validate":
        return validate(folder)
    if request["do"] == "sign":
        ignored = [*request["ignore"], request["signature"]]
        config = how(request).set_ignored_paths(paths=ignored, ignore_git_paths=True)
        made = signing.Config().set_hashing_config(config)
        made.use_elliptic_key_signer(private_key=request["key"]).sign(folder, request["signature"])
    else:
        # It does not find out by itself that links were followed, nor how blake2b is called.
        config = how(request).set_ignored_paths(paths=[], ignore_git_paths=True)
        made = verifying.Config().set_hashing_config(config)
        made.use_elliptic_key_verifier(public_key=request["key"]).verify(folder, request["signature"])
    return []


for line in sys.stdin:
    try:
        said = answer(json.loads(line))
    except Exception as err:
        said = [f"{type(err).__name__}: {err}"[:300]]
    print(json.dumps(said), flush=True)
