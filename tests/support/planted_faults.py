"""Faults as behaviour: for each, the code that keeps a promise and what would break it; `test_planted_faults` plants them.

A fault is killed when one of the named tests fails with it. `old` stands exactly once in its module: who rewrites the code
moves the fault along, so that the promise keeps a test that would notice its loss.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """What would go wrong (`name`), in which module, the text and what takes its place, and tests that must then fail."""

    name: str
    module: str
    old: str
    new: str
    tests: str


_SIGNATURE = "tests/unit/trust/test_signature.py tests/attacks/test_signature_mutations.py"
_VERIFY = "tests/unit/trust/test_verify.py tests/attacks/test_self_signing.py"
_DECIDED = "tests/unit/trust/test_decisions.py tests/attacks/test_growing_trust.py"
_ADMITTED = "tests/unit/executor/test_admission.py tests/unit/executor/test_refusals.py tests/attacks/test_item_swaps.py"
_CHAINS = "tests/unit/executor/test_chain.py tests/attacks/test_hostile_chains.py"
_BENEATH = "tests/unit/fs/test_beneath.py tests/attacks/test_hostile_paths.py"
_PROTECTED = "tests/attacks/test_hostile_paths.py tests/attacks/test_users_own_places.py tests/attacks/test_acted_on_names.py"
_SSRF = "tests/attacks/test_ssrf.py"
_EDITS = "tests/tools/test_edit_lines.py tests/tools/test_short_addresses.py tests/tools/test_swe.py"
_HISTORIES = "tests/tools/test_address_histories.py tests/tools/test_short_addresses.py tests/unit/line_ids"
_SANDBOX = "tests/attacks/test_sandbox_escapes.py"

FAULTS = [
    # Signatures.
    Fault("the digest is not compared", "trust/signature.py", "if digest != signature.digest:", "if False:", _SIGNATURE),
    Fault(
        "a second signature line is taken",
        "trust/signature.py",
        'if b"rye:signed:" in searched and re.search',
        "if False and re.search",
        _SIGNATURE,
    ),
    Fault(
        "a signature has other spellings",
        "trust/signature.py",
        "if base64.urlsafe_b64encode(signature) != encoded:",
        "if False:",
        _SIGNATURE,
    ),
    Fault(
        "a timestamp names no moment",
        "trust/signature.py",
        "if not _is_moment(match[1]):",
        "if False:",
        "tests/attacks/test_growing_trust.py",
    ),
    Fault("a Python tool has carriage returns", "trust/signature.py", "if found in raw:", "if False:", _SIGNATURE),
    Fault(
        "a Python tool declares its encoding",
        "trust/signature.py",
        "if cookie and cookie[1].lower() not in",
        "if False and cookie[1].lower() not in",
        _SIGNATURE,
    ),
    Fault(
        "any first line goes before the signature",
        "trust/signature.py",
        "if start and not re.fullmatch(form.first, raw[: start - 1]):",
        "if False:",
        _SIGNATURE,
    ),
    # Keys.
    Fault("the signature is not checked", "trust/verify.py", "    check(counting[-1].public, signed)\n", "", _VERIFY),
    Fault(
        "a revoked key counts",
        "trust/verify.py",
        "live = [key for key in named if key.public.digest not in store.revoked]",
        "live = named",
        _VERIFY,
    ),
    Fault(
        "a project's key counts by itself",
        "trust/verify.py",
        '_COUNTING: Final = ("system", "user", "explicit", "approved")',
        '_COUNTING: Final = ("system", "user", "explicit", "approved", "project")',
        _VERIFY,
    ),
    Fault(
        "any bundle brings the system's key",
        "trust/verify.py",
        'if key.role == "system" and key.public.digest != SYSTEM_KEY_DIGEST:',
        "if False:",
        _VERIFY,
    ),
    Fault(
        "a document names another fingerprint",
        "trust/verify.py",
        'if _text(table, "fingerprint") != public.fingerprint:',
        "if False:",
        _VERIFY,
    ),
    Fault(
        "an approval counts in every project",
        "trust/decisions.py",
        "for approval in self.approvals if approval.root == root)",
        "for approval in self.approvals)",
        _DECIDED,
    ),
    Fault("an update takes more permissions", "trust/decisions.py", "if one == item_id or not known}", "}", _DECIDED),
    Fault(
        "a revocation leaves the approvals",
        "trust/decisions.py",
        "approvals = tuple(a for a in old.approvals if a.key != key)",
        "approvals = old.approvals",
        _DECIDED,
    ),
    Fault(
        "decisions that cannot be read are none",
        "fs/records.py",
        "raise self._unreadable(str(err.strerror)) from None",
        "return None",
        _DECIDED,
    ),
    # Admission and chain.
    Fault(
        "the manifest is not compared",
        "executor/admission.py",
        "if manifest.items.get(candidate.item_type, {}).get(candidate.item_id) != candidate.digest:",
        "if False:",
        "tests/unit/executor/test_loading.py tests/unit/items/test_bundles.py tests/cli/test_bundle.py tests/attacks/test_item_swaps.py",
    ),
    Fault(
        "--allow-unsigned runs what was changed",
        "executor/admission.py",
        'if not allow_unsigned or err.code != "unsigned" or candidate.space not in',
        "if not allow_unsigned or candidate.space not in",
        _ADMITTED,
    ),
    Fault(
        "a runtime does not narrow permissions",
        "executor/chain.py",
        "tuple(one for one in tool.permissions if all(one in allowed for allowed in listed))",
        "tool.permissions",
        _CHAINS,
    ),
    Fault(
        "a project brings a primitive",
        "executor/chain.py",
        'if tool.tool_type != "primitive" or not own or name not in PRIMITIVES:',
        'if tool.tool_type != "primitive" or name not in PRIMITIVES:',
        _CHAINS,
    ),
    Fault(
        "a time limit is not the lowest",
        "executor/chain.py",
        'return float(min(_number(chain.tool.id, "timeout", wanted), config.get("max_timeout_seconds") or 3600))',
        'return float(_number(chain.tool.id, "timeout", wanted))',
        _CHAINS,
    ),
    Fault(
        "a project takes a reserved id",
        "items/spaces.py",
        'if item_id.startswith(RESERVED) and role not in ("system", "explicit"):',
        "if False:",
        "tests/unit/executor/test_loading.py tests/unit/executor/test_executor.py tests/unit/executor/test_admission.py tests/attacks/test_self_signing.py",
    ),
    Fault(
        "a file moved to another id runs",
        "items/parse.py",
        "if bound_id is not None and bound_id != item_id:",
        "if False:",
        "tests/attacks/test_item_swaps.py tests/unit/items",
    ),
    Fault(
        "a file moved to another folder runs",
        "items/parse.py",
        'if category != item_id.rpartition("/")[0]:',
        "if False:",
        "tests/attacks/test_item_swaps.py tests/unit/items",
    ),
    # Paths.
    Fault(
        "`..` leads above the root",
        "fs/beneath.py",
        'raise OSError(errno.EXDEV, "the path leads above the root")',
        "self._open.append(os.open(b'..', DIRECTORY, dir_fd=self._root)); self.names.append(b'..'); return",
        _BENEATH,
    ),
    Fault(
        "the kernel resolves out of the root",
        "fs/beneath.py",
        "_BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS))",
        "_NO_MAGICLINKS | _NO_SYMLINKS))",
        _BENEATH,
    ),
    Fault(
        "an absolute link leads into another folder",
        "fs/beneath.py",
        "if below is not None and _leads_to(path, root_fd):",
        "if below is not None:",
        _BENEATH + " tests/tools/test_absolute_links.py",
    ),
    Fault(
        "the short name of .git is written",
        "workspace/protected_paths.py",
        'if name in (".git", "git~1"):',
        'if name == ".git":',
        "tests/unit/fs/test_names.py tests/attacks/test_hostile_paths.py",
    ),
    Fault(
        "another spelling of .git is written",
        "workspace/protected_paths.py",
        'return text.casefold().split(":", 1)[0].rstrip(". ")',
        "return text",
        _PROTECTED,
    ),
    Fault(
        "lockfiles are written by tools",
        "workspace/protected_paths.py",
        '"config", "lockfiles"})',
        '"config"})',
        "tests/unit/fs/test_names.py tests/unit/items/test_lockfiles.py tests/attacks/test_hostile_paths.py",
    ),
    Fault("a private key is read", "workspace/protected_paths.py", "if is_key(info):", "if False:", _PROTECTED),
    Fault(
        "the user's own settings are written", "workspace/protected_paths.py", "if current in closed:", "if False:", _PROTECTED
    ),
    Fault(
        "a protected name that is a link is written",
        "workspace/protected_paths.py",
        "at = next((name for led, name in found if parts[: len(led)] == led), None)",
        "at = None",
        _PROTECTED,
    ),
    # The web.
    Fault(
        "an IPv4 address hides in an IPv6 one",
        "web/addresses.py",
        "if any(address in net for net in _CARRIERS):",
        "if False:",
        _SSRF + " tests/unit/web",
    ),
    Fault(
        "any IPv4 address is public",
        "web/addresses.py",
        "return next((what for net, what in _TABLE_4 if address in net), None)",
        "return None",
        _SSRF + " tests/unit/web",
    ),
    Fault("the peer is not confirmed", "web/transport.py", "if peer != address:", "if False:", _SSRF + " tests/unit/web"),
    # Edits.
    Fault(
        "a stale file is edited",
        "edits/line_id_changes.py",
        'if document.before is not None and options.on_stale != "rebase":',
        "if False:",
        _EDITS,
    ),
    Fault(
        "lines that nobody was shown are replaced",
        "edits/line_id_changes.py",
        "if not (is_seen and neighbours_seen and before):",
        "if False:",
        _EDITS,
    ),
    Fault(
        "lines that were apart when they were seen are replaced as neighbours",
        "edits/line_id_changes.py",
        "if not (is_seen and neighbours_seen and before):",
        "if not is_seen:",
        _EDITS,
    ),
    Fault(
        "an unknown version counts as known",
        "edits/line_id_changes.py",
        'if since is None or self.options.on_stale != "rebase":',
        "if False:",
        _EDITS,
    ),
    Fault(
        "find replaces the first of several",
        "edits/line_id_changes.py",
        "if found.places != expected or overlap:",
        "if not found.places:",
        "tests/tools/test_edit_lines_compact.py",
    ),
    Fault(
        "changes of the same lines overlap",
        "edits/line_id_changes.py",
        "        _check_overlaps(plans, self.problems)\n",
        "",
        "tests/tools/test_edit_lines_compact.py",
    ),
    Fault(
        "a whole file replaces another state",
        "edits/whole_file.py",
        'if expected is None or expected.removeprefix("sha256:").lower() == before:',
        "if True:",
        "tests/tools/test_write.py",
    ),
    Fault(
        "a view's escapes are written as text",
        "edits/whole_file.py",
        'if old is None or "\\\\x" not in content or old.isascii():',
        "if True:",
        "tests/tools/test_write.py tests/tools/test_escaped_bytes.py",
    ),
    # Line IDs.
    Fault(
        "an ID comes back for another line",
        "line_ids/reconcile.py",
        "if name is None or name in alive:",
        "if name is None:",
        "tests/tools/test_undo.py tests/unit/line_ids tests/tools/test_address_histories.py",
    ),
    Fault(
        "an address is given twice", "line_ids/reconcile.py", "index.numbers += new_at - at", "index.numbers += 0", _HISTORIES
    ),
    Fault(
        "a common line counts as moved",
        "line_ids/reconcile.py",
        "if sum(_weight(self.texts(b)) for _, b in run) >= _UNMISTAKABLE:",
        "if run:",
        _HISTORIES,
    ),
    Fault(
        "a clone's index counts",
        "workspace/seals.py",
        "raise ValueError(label)",
        "pass",
        "tests/attacks/test_poisoned_index.py",
    ),
    # Writes.
    Fault(
        "another program's write is lost",
        "workspace/atomic_replace.py",
        "same = digest_at(place.dir_fd, temporary) == expected\n        if same:\n            sync_directory(place.dir_fd)\n    except OSError:\n        give_back",
        "same = True\n    except OSError:\n        give_back",
        "tests/unit/workspace tests/attacks/test_lost_updates.py",
    ),
    Fault(
        "an edit gives a program set-id bits",
        "workspace/atomic_replace.py",
        " & ~(stat.S_ISUID | stat.S_ISGID)",
        "",
        "tests/attacks/test_set_id_bits.py tests/unit/workspace",
    ),
    Fault(
        "a crash's rest is deleted unseen",
        "workspace/atomic_replace.py",
        "if applied and digest_at(place.dir_fd, temporary) not in (None, before, after):",
        "if False:",
        "tests/unit/workspace tests/attacks/test_real_faults.py",
    ),
    # Search and sandbox.
    Fault(
        "a command reaches the network",
        "sandbox/bubblewrap.py",
        'network = () if policy.network == "on" else ("--unshare-net",)',
        "network = ()",
        _SANDBOX + " tests/attacks/test_every_property.py",
    ),
    Fault(
        "a read-only project is written",
        "sandbox/bubblewrap.py",
        '_mount_options("--bind" if policy.write_project else "--ro-bind", root',
        '_mount_options("--bind", root',
        _SANDBOX + " tests/attacks/test_every_property.py tests/attacks/test_foreign_tools.py",
    ),
]
