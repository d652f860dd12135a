package Net::INET6Glue::INET_is_INET6;

# ldirectord loads the module of this name before it asks an IPv6 server over HTTP, so that LWP could do it in the days
# of IO::Socket::INET. Since Net::HTTP 6.10 it does it by itself, with IO::Socket::IP. So there is nothing to do.

use strict;
use warnings;

1;
