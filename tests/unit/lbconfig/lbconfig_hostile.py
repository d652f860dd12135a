"""Values that no field, or hardly any, should let through."""

# What must never get through any field of text: separators and quotes of every grammar that is
# rendered, shell characters, and characters that look like the allowed ones.
HOSTILE = (
    "a\nb",
    "a\n    checkcommand=/bin/sh",
    "a\r",
    "a\tb",
    "a\x00b",
    "a\x7fb",
    "a\u2028b",
    'a"b',
    "a'b",
    "a`id`",
    "$(reboot)",
    "a;reboot",
    "a|b",
    "a&b",
    "a#b",
    "a{b}",
    "a\\b",
    "a<b>",
    "-a",
    "../a",
    " a",
    "a ",
    "\uff41",  # a full-width a
    "\u0661",  # an Arabic digit
    "a" * 1000,
    "",
)
NUMBERS = (0, -1, 65536, 10**30, 10**5000)
ADDRESSES = (
    "",
    "10.0.2",
    "10.0.2.300",
    "010.0.2.100",
    "10.0.2.100 ",
    "10.0.2.100\n",
    "10.0.2.100/24",
    "10.0.2.100:80",
    "\u0661\u0660.0.2.100",
    "0x0a000264",
    "167772772",
    "host.example.org",
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "224.0.0.5",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "fe80::1",
    "2001:db8::1",
    "::ffff:10.0.2.100",
    "10.0.2.0",  # the network's own address
    "10.0.2.255",  # its broadcast address
    *HOSTILE,
)
