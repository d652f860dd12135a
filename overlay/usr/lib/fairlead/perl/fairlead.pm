package fairlead;

# Loaded into ldirectord (PERL5OPT).

# Its log goes to a pipe: without this it would arrive in blocks of 8 KB, minutes late, and the last
# block not at all.
$| = 1;

# It reads ipvsadm's table several times a second and warns of each line that has no flags: that would
# push everything else out of the log.
$SIG{__WARN__} = sub {
	my ($text) = @_;
	print STDERR $text unless $text =~ /^Use of uninitialized value in split at \S+ldirectord /;
};

1;
