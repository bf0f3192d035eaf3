# shellcheck shell=bash
# For scripts of this folder that root starts: they set `runner` to nothing and `home` to "", and remove `home` in the end.

# Let the runner be an ordinary user, who has a home, a copy of the checkout and a Python. The number is nobody's here.
be_ordinary() {
    local user=(setpriv --reuid=12345 --regid=12345 --clear-groups) folders folder path=""
    "${user[@]}" true || { echo "as root: setpriv makes no ordinary user here"; return 0; }
    home=$(mktemp -d /tmp/rye-newcomer.XXXXXX)
    IFS=: read -ra folders <<<"$PATH"
    for folder in "${folders[@]}"; do
        case $folder in "${VIRTUAL_ENV:-none}"/*) continue ;; esac
        "${user[@]}" test -x "$folder" && path="$path${path:+:}$folder"
    done
    # Root's own Python may lie in root's home.
    if ! "${user[@]}" env "PATH=$path" python3 -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        cp -a "$(python -c 'import sys; print(sys.base_prefix)')" "$home/python"
        path="$home/python/bin:$path"
    fi
    mkdir "$home/checkout"
    tar -c --exclude=./.venv . | tar -x -C "$home/checkout"
    chown -R 12345:12345 "$home"
    runner=("${user[@]}" env -u VIRTUAL_ENV -u TMPDIR -C "$home/checkout" "HOME=$home" USER=newcomer LOGNAME=newcomer "PATH=$path")
}
