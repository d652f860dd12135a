
# --- with ip alone, until the next restart ---

memory=/run/fairlead-server-$server
units=/run/systemd/system
unfit="is not Linux"

fits() { [ "$(uname)" = Linux ]; }
kept() { :; }
is_kept() { :; }
set_up() { begin; }
undo() { end; forget; }
