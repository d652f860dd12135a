################################################################################
#
# keepalived-vrrp
#
################################################################################

# The version of the developer image: Debian's, which the stories of a pair run with.
KEEPALIVED_VRRP_VERSION = 2.3.3
KEEPALIVED_VRRP_SOURCE = keepalived-$(KEEPALIVED_VRRP_VERSION).tar.gz
KEEPALIVED_VRRP_SITE = https://www.keepalived.org/software
KEEPALIVED_VRRP_LICENSE = GPL-2.0+
KEEPALIVED_VRRP_LICENSE_FILES = COPYING
KEEPALIVED_VRRP_CPE_ID_VENDOR = keepalived
KEEPALIVED_VRRP_CPE_ID_PRODUCT = keepalived
KEEPALIVED_VRRP_DEPENDENCIES = host-pkgconf
# It elects, and that is all. Flags against attacks are Buildroot's own.
KEEPALIVED_VRRP_CONF_OPTS = \
	--disable-dbus \
	--disable-hardening \
	--disable-iptables \
	--disable-json \
	--disable-lvs \
	--disable-nftables \
	--disable-snmp \
	--disable-systemd \
	--disable-track-process \
	--disable-vmac \
	--disable-vrrp-auth \
	--with-init=SYSV
# It would take these where another package happens to have been built before.
KEEPALIVED_VRRP_CONF_ENV = ac_cv_lib_magic_magic_open=no
ifeq ($(BR2_PACKAGE_KMOD),y)
KEEPALIVED_VRRP_DEPENDENCIES += kmod
endif

# Without its examples, and the script for an init system that the box has not.
define KEEPALIVED_VRRP_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 755 $(@D)/bin/keepalived $(TARGET_DIR)/usr/sbin/keepalived
endef

$(eval $(autotools-package))
