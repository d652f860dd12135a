package fairlead;

# Loaded into ldirectord (PERL5OPT). Its log goes to a pipe: without this it would arrive in blocks
# of 8 KB, minutes late, and the last block not at all.
$| = 1;

1;
