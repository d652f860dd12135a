################################################################################
#
# perl-socket6
#
################################################################################

PERL_SOCKET6_VERSION = 0.29
PERL_SOCKET6_SOURCE = Socket6-$(PERL_SOCKET6_VERSION).tar.gz
PERL_SOCKET6_SITE = $(BR2_CPAN_MIRROR)/authors/id/U/UM/UMEMOTO
PERL_SOCKET6_LICENSE = BSD-3-Clause
PERL_SOCKET6_LICENSE_FILES = README
PERL_SOCKET6_DISTNAME = Socket6

# Makefile.PL runs a configure script: tell it what it cannot find out by running programs of the target.
PERL_SOCKET6_CONF_ENV = \
	$(TARGET_CONFIGURE_OPTS) \
	ac_cv_prog_cc_cross=yes \
	cross_compiling=yes

$(eval $(perl-package))
