
# --- what was asked for ---

wish=${1:-set-up}
case $wish in
set-up | verify | undo) ;;
*) echo "usage: $0 [verify|undo]" >&2; exit 2 ;;
esac
if ! fits; then
	echo "error: this machine $unfit: take the script for another system" >&2
	exit 2
fi
case $wish in
set-up)
	set_up # with no && behind it, which would let it go on after a failure
	verify
	;;
verify) verify ;;
undo) undo ;;
esac
