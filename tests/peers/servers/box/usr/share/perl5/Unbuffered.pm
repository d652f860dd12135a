# Loaded into an ldirectord without our modules: its log is written line by line.
package Unbuffered;

$| = 1;

1;
