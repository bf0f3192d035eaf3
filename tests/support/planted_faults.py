"""Faults as behaviour: for each, the code that keeps a promise and what would break it; `test_planted_faults` plants them.

A fault is killed when the named test fails with it. What stands behind `-` stands exactly once in the module named above it:
who rewrites the code moves the fault along, so that the promise keeps a test that would notice its loss. Where no `+`
follows, a condition never holds, and other code is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Fault:
    """What would go wrong (`name`), a test that must then fail, in which module, the lines there and what takes their place."""

    name: str
    test: str
    module: str
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def read(table: str) -> list[Fault]:
    """Return the faults of a table: a module, below it `* NAME: TEST`, below that `- OLD` and `+ NEW` lines; an `if` alone gets `if False:`."""
    found: list[Fault] = []
    module = ""
    for line in table.splitlines():
        mark, text = line[:2], line[2:]
        if mark == "* ":
            name, _, test = text.rpartition(": ")
            found.append(Fault(name, test, module))
        elif mark in ("- ", "+ "):
            (found[-1].old if mark == "- " else found[-1].new).append(text)
        else:
            module = line
    for fault in found:
        if not fault.new and fault.old[0].startswith("if "):
            fault.new.append("if False:")
    return found


FAULTS = read(r"""
trust/signature.py
* the digest is not compared: unit/trust/test_signature.py::test_a_foreign_signature_verifies
- if digest != signature.digest:
* a second signature line is taken: unit/trust/test_signature.py::test_a_script_has_the_comment_of_its_header
- if b"rye:signed:" in searched and re.search
+ if False and re.search
* a signature has other spellings: attacks/test_signature_mutations.py::test_mutant_is_refused_and_the_lax_verifier_takes_it
- if base64.urlsafe_b64encode(signature) != encoded:
* a timestamp names no moment: attacks/test_growing_trust.py::test_impossible_timestamps_are_malformed
- if not _is_moment(match[1]):
* a Python tool has carriage returns: unit/trust/test_signature.py::test_what_would_not_verify_is_not_signed
- if found in raw:
* a Python tool declares its encoding: attacks/test_signature_mutations.py::test_mutant_is_refused_and_the_lax_verifier_takes_it[signed_cookie]
- if cookie and cookie[1].lower() not in
+ if False and cookie[1].lower() not in
* any first line goes before the signature: unit/trust/test_signature.py::test_a_script_has_the_comment_of_its_header
- if start and not re.fullmatch(form.first, raw[: start - 1]):

trust/verify.py
* the signature is not checked: unit/executor/test_executor.py::test_the_gates_stand_in_order_and_nothing_of_what_is_refused_runs
-     check(counting[-1].public, signed)
+     pass
* a revoked key counts: unit/trust/test_verify.py::test_where_its_document_lies_decides_whether_a_key_counts
- live = [key for key in named if key.public.digest not in store.revoked]
+ live = named
* a project's key counts by itself: unit/trust/test_verify.py::test_where_its_document_lies_decides_whether_a_key_counts
- _COUNTING: Final = ("system", "user", "explicit", "approved")
+ _COUNTING: Final = ("system", "user", "explicit", "approved", "project")
* any bundle brings the system's key: unit/trust/test_verify.py::test_of_installed_bundles_only_the_system_key_counts
- if key.role == "system" and key.public.digest != SYSTEM_KEY_DIGEST:
* a document names another fingerprint: unit/trust/test_verify.py::test_malformed_documents_are_ignored_and_what_is_wrong_is_said_once
- if _text(table, "fingerprint") != public.fingerprint:

trust/decisions.py
* an approval counts in every project: unit/trust/test_decisions.py::test_decisions_lie_where_only_the_user_reads_and_hold_for_one_root
- for approval in self.approvals if approval.root == root)
+ for approval in self.approvals)
* an update takes more permissions: attacks/test_growing_trust.py::test_a_new_id_gets_what_its_key_was_approved_for_and_no_more
- if one == item_id or not known}
+ }
* a revocation leaves the approvals: unit/trust/test_decisions.py::test_a_revocation_drops_the_keys_approvals
- approvals = tuple(a for a in old.approvals if a.key != key)
+ approvals = old.approvals

fs/records.py
* decisions that cannot be read are none: unit/trust/test_decisions.py::test_a_link_to_a_file_that_is_not_there_means_that_nothing_is_trusted
- raise self._unreadable(str(err.strerror)) from None
+ return None

executor/admission.py
* the manifest is not compared: unit/items/test_bundles.py::test_an_installed_bundles_items_are_held_to_its_manifest
- if manifest.items.get(candidate.item_type, {}).get(candidate.item_id) != candidate.digest:
* --allow-unsigned runs what was changed: unit/executor/test_executor.py::test_it_is_for_unsigned_files_alone_and_for_ones_own_spaces
- if not allow_unsigned or err.code != "unsigned" or candidate.space not in
+ if not allow_unsigned or candidate.space not in

executor/chain.py
* a runtime does not narrow permissions: unit/executor/test_chain.py::test_a_runtime_narrows_permissions_and_never_widens_them
- tuple(one for one in tool.permissions if all(one in allowed for allowed in listed))
+ tool.permissions
* a project brings a primitive: attacks/test_hostile_chains.py::test_a_chain_with_a_bad_link_does_not_run
- if tool.tool_type != "primitive" or not own or name not in PRIMITIVES:
+ if tool.tool_type != "primitive" or name not in PRIMITIVES:
* a time limit is not the lowest: unit/executor/test_chain.py::test_the_time_limit_is_what_is_declared_within_what_every_link_allows
- return float(min(_number(chain.tool.id, "timeout", wanted), config.get("max_timeout_seconds") or 3600))
+ return float(_number(chain.tool.id, "timeout", wanted))

items/spaces.py
* a project takes a reserved id: unit/items/test_sign_verify.py::test_a_key_that_is_named_has_authority_over_the_reserved_ids_of_the_files
- if item_id.startswith(RESERVED) and role not in ("system", "explicit"):

items/parse.py
* a file moved to another id runs: unit/items/test_sign_verify.py::test_what_a_reader_would_refuse_is_not_signed
- if bound_id is not None and bound_id != item_id:
* a file moved to another folder runs: unit/items/test_sign_verify.py::test_what_a_reader_would_refuse_is_not_signed
- if category != item_id.rpartition("/")[0]:

fs/beneath.py
* `..` leads above the root: unit/fs/test_beneath.py::test_every_shape_has_its_verdict_both_ways
- raise OSError(errno.EXDEV, "the path leads above the root")
+ self._open.append(os.open(b'..', DIRECTORY, dir_fd=self._root)); self.names.append(b'..'); return
* the kernel resolves out of the root: unit/fs/test_beneath.py::test_every_shape_has_its_verdict_both_ways
- _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS))
+ _NO_MAGICLINKS | _NO_SYMLINKS))
* an absolute link leads into another folder: unit/fs/test_beneath.py::test_an_absolute_link_means_the_folder_that_stands_at_the_roots_path_now
- if below is not None and stamps.identity(path) == stamps.identity(root_fd):
+ if below is not None:

workspace/protected_paths.py
* the short name of .git is written: unit/fs/test_names.py::test_protected_places_under_every_spelling
- if name in (".git", "git~1"):
+ if name == ".git":
* another spelling of .git is written: attacks/test_acted_on_names.py::test_none_is_made
- return text.casefold().split(":", 1)[0].rstrip(". ")
+ return text
* lockfiles are written by tools: unit/fs/test_names.py::test_protected_places_under_every_spelling
- "config", "lockfiles"})
+ "config"})
* a private key is read: attacks/test_users_own_places.py::test_a_private_key_is_not_read_by_any_name
- if is_key(info):
* the user's own settings are written: attacks/test_users_own_places.py::test_nothing_is_made_there
- if current in closed:
* a protected name that is a link is written: attacks/test_acted_on_names.py::test_a_link_is_followed_to_what_it_stands_for
- at = next((name for led, name in found if parts[: len(led)] == led), None)
+ at = None

web/addresses.py
* an IPv4 address hides in an IPv6 one: unit/web/test_client.py::test_which_addresses_are_public
- if any(address in net for net in _CARRIERS):
* any IPv4 address is public: attacks/test_ssrf.py::test_no_spelling_reaches_loopback_or_a_private_network
- return next((what for net, what in _TABLE_4 if address in net), None)
+ return None

web/transport.py
* the peer is not confirmed: unit/web/test_client.py::test_a_connection_that_the_system_takes_elsewhere_is_closed
- if peer != address:

edits/line_id_changes.py
* a stale file is edited: tools/test_edit_lines.py::test_story[a stale file is refused with what became of the lines]
- if options.on_stale != "rebase" and _changed_by_others(document):
* lines that nobody was shown are replaced: tools/test_edit_lines.py::test_story[a line that came between refuses the range until it was read]
- if not (is_seen and neighbours_seen and before):
* lines that were apart when they were seen are replaced as neighbours: tools/test_edit_lines.py::test_story[a line that is gone refuses the range that it stood in until that was read]
- if not (is_seen and neighbours_seen and before):
+ if not is_seen:
* an unknown version counts as known: tools/test_short_addresses.py::test_a_version_holds_the_edit_to_that_view
- if since is None or self.options.on_stale != "rebase":
* find replaces the first of several: tools/test_edit_lines.py::test_what_is_refused
- if not is_counted or overlap:
+ if not found.places:
* changes of the same lines overlap: tools/test_edit_lines.py::test_what_is_refused
-         _check_overlaps(plans, self.problems)
+         pass

edits/whole_file.py
* a whole file replaces another state: tools/test_write.py::test_the_expected_digest
- if expected is None or expected.removeprefix("sha256:").lower() == before:
+ if True:
* a view's escapes are written as text: tools/test_guessed_encodings.py::test_write_refuses_what_was_shown_escaped
- if old is None or "\\x" not in content or old.isascii():
+ if True:

line_ids/reconcile.py
* an ID comes back for another line: unit/line_ids/test_index.py::test_an_id_that_is_given_back_is_on_its_own_line_and_on_no_second_one
- if name is None or name in alive:
+ if name is None:
* an undo does not give lines back their IDs: unit/line_ids/test_index.py::test_undo_gives_each_of_several_twins_its_own_id
- if name is None or name in alive:
+ if True:
* what one change deletes and another writes is one line: tools/test_file_histories.py::test_no_byte_is_wrong_and_no_address_ever_names_another_line
-         if left_old and left_new:
+         moves = True
+         if left_old and left_new:
* an address is given twice: tools/test_file_histories.py::test_no_byte_is_wrong_and_no_address_ever_names_another_line
- index.numbers += new_at - at
+ index.numbers += 0
* a common line counts as moved: tools/test_short_addresses.py::test_a_line_that_others_moved_is_the_same_only_where_it_is_unmistakable
- if sum(_weight(self.texts(b)) for _, b in run) >= _UNMISTAKABLE:
+ if run:

workspace/seals.py
* a clone's index counts: attacks/test_poisoned_index.py::test_a_record_of_another_file_counts_as_missing
- raise ValueError(label)
+ pass

workspace/atomic_replace.py
* another program's write is lost: unit/workspace/test_atomic_replace.py::test_deleting_what_is_known_and_nothing_else
- same = _is(place.dir_fd, temporary, expected)
-         if same and durably:
-             atomic.sync(dir_fd=place.dir_fd)
-     except OSError:
-         give_back
+ same = True
+     except OSError:
+         give_back
* an edit gives a program set-id bits: attacks/test_set_id_bits.py::test_no_content_of_a_model_is_setuid
-  & ~(stat.S_ISUID | stat.S_ISGID)
* a crash's rest is deleted unseen: unit/journal/test_journal.py::test_the_next_call_settles_what_a_crash_left
- if applied and aside not in (None, before, after):

sandbox/bubblewrap.py
* a command reaches the network: attacks/test_sandbox_escapes.py::test_what_a_policy_takes_away_is_gone
- network = () if policy.network == "on" else ("--unshare-net",)
+ network = ()
* a read-only project is written: attacks/test_sandbox_escapes.py::test_what_a_policy_takes_away_is_gone
- _mount_options("--bind" if policy.write_project else "--ro-bind", root
+ _mount_options("--bind", root

workspace/atomic_replace.py
* another program's write is replaced: unit/workspace/test_atomic_replace.py::test_whatever_stands_there_instead_is_a_conflict_and_stays
- same = _is(place.dir_fd, temporary, expected)
-         if same and durably:
-             atomic.sync(dir_fd=place.dir_fd)
-     except OSError as err:
+ same = True
+     except OSError as err:

journal/recovery.py
* a crash's record removes any file: unit/journal/test_journal.py::test_a_pending_record_names_no_file_but_a_temporary_one
- return found if all(is_temporary(entry.temporary.encode()) for entry in found) else None
+ return found
* a batch's record removes any file: unit/journal/test_commit.py::test_a_record_cut_short_is_dropped_when_it_is_old_and_names_no_file_but_temporary_ones
- return found if all(is_temporary(entry.temporary.encode()) for entry in found) else None
+ return found
* a batch is finished in part: unit/journal/test_commit.py::test_a_file_that_another_program_changed_after_a_kill_stays_as_it_is
- if all(state.ready for state in states):
+ if True:

journal/entries.py
* a copy of a record is a second change: unit/journal/test_journal.py::test_a_copy_of_a_record_under_another_name_is_no_second_change
- return entry if entry is not None and entry.id == path.stem else None
+ return entry

journal/tree_undo.py
* a command's change is taken back in part, unsaid: unit/journal/test_tree_changes.py::test_a_command_is_taken_back[one whose lines changed since]
-     if refused:
+     if False:

registry/pull.py
* a pinned namespace changes its key: unit/registry/test_registry.py::test_a_namespace_is_pinned_only_when_asked_and_then_holds
- if pinned is not None and pinned != key.digest:
* a published version changes: attacks/test_hostile_registry.py::test_a_hostile_server_installs_nothing
- if seen is not None and seen.version == version and seen.digest != checked.verified.digest:
* an older version is pulled: unit/registry/test_registry.py::test_versions_go_up_unless_the_user_says_otherwise
-     versions.refuse_lower(file, version, known, space, search_path, "rye registry pull … --allow-downgrade")
+     pass
* a reserved id is pulled: unit/registry/test_registry.py::test_one_bad_reference_among_good_ones_does_not_stop_them
- if file.item_type != "bundle" and file.item_id.startswith(spaces.RESERVED) and not served
+ if False and not served

items/lockfiles.py
* a lockfile's tool is not compared: unit/items/test_lockfiles.py::test_a_changed_tool_is_refused_until_the_lock_is_renewed
- if root != (item_id, version, chain[0]["integrity"]):
* a lockfile's chain is not compared: unit/items/test_lockfiles.py::test_every_field_that_pins_is_held_and_no_other
- if pinned != [(link["item_id"], link["integrity"]) for link in chain]:

config/settings.py
* the loosest setting applies: unit/sandbox/test_sandbox.py::test_the_tightest_setting_applies
- return max((one for one in
+ return min((one for one in

items/schema.py
* a schema fetches what it refers to: unit/items/test_schema.py::test_a_reference_to_another_place_is_refused_and_never_fetched
- , retriever=_refuse)
+ )

executor/primitives/http_request.py
* a secret goes to any host: unit/executor/test_http_request.py::test_a_secret_goes_to_its_hosts_alone_and_is_shown_to_nobody
- if host not in found["hosts"]:
* a secret is taken that others can read: unit/executor/test_http_request.py::test_a_secret_goes_to_its_hosts_alone_and_is_shown_to_nobody
- if os.stat(path).st_mode & 0o077:
* a secret goes without TLS: unit/executor/test_http_request.py::test_a_secret_goes_to_its_hosts_alone_and_is_shown_to_nobody
- if scheme != "https" and host not in
+ if False and host not in
* a secret comes back in an answer: unit/executor/test_http_request.py::test_a_secret_comes_back_in_no_form
- parts = {name: secrets.removed(getattr(got, name))
+ parts = {name: getattr(got, name)

review/guard.py
* another host's name opens the review pages: unit/review/test_guard.py::test_another_name_of_the_host_is_refused
- if hosts != [self._host]:
* the review pages need no cookie: unit/review/test_guard.py::test_without_the_cookie_nothing_is_shown_and_nothing_done
- if not self._is_known(given):
* another page asks for the review pages: unit/review/test_guard.py::test_what_another_page_asks_for_is_refused
- if any(site not in (b"same-origin", b"none") for site in sites):
* a form of another page is taken: unit/review/test_guard.py::test_a_form_of_another_page_is_refused
- if not hmac.compare_digest(form.pop("token", "").encode("utf-8", "replace"), self.form_token.encode()):
+ if form.pop("token", "") is None:
* a code opens the review pages twice: unit/review/test_guard.py::test_the_address_opens_the_pages_once_and_another_one_is_told
-             self._code = secrets.token_urlsafe(24)
+             pass

local_http.py
* another server's name is taken: attacks/test_mcp_guard.py::test_another_servers_name_is_refused_with_the_token_too
- if len(named) != 1 or not self._expected(named[0]):
* a page of another origin is taken: attacks/test_mcp_guard.py::test_a_page_of_another_origin_is_refused_with_the_token_too
- if origins and not (len(origins) == 1 and self._own_origin(origins[0])):
* any token is taken: attacks/test_mcp_guard.py::test_a_wrong_token_is_refused
- return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(b" "), self._token or b"")
+ return scheme.lower() == b"bearer"

workspace/text.py
* a newline across two wide characters ends a line: tools/test_read.py::test_the_bytes_of_a_newline_across_two_wide_characters_end_no_line
- while found >= 0 and (found - base) % len(newline):
+ while False:

filesearch/tree.py
* folders beyond the first are not counted: tools/test_grep.py::test_too_many_matches_are_counted_by_folder_and_the_call_that_continues_is_short
- more = f", {len(most) - _SHOWN} more folders" if len(most) > _SHOWN else ""
+ more = ""
""")
