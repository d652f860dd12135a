################################################################################
#
# ipvsadm
#
################################################################################

IPVSADM_VERSION = 1.31
IPVSADM_SITE = $(BR2_KERNEL_MIRROR)/linux/utils/kernel/ipvsadm
IPVSADM_LICENSE = GPL-2.0+
IPVSADM_LICENSE_FILES = README
IPVSADM_DEPENDENCIES = host-pkgconf libnl popt

# Its Makefiles take CFLAGS for the whole set of flags and ask "which pkg-config" for libnl; libipvs has
# no rule that lets ipvsadm wait for it, so one job at a time.
IPVSADM_MAKE = $(MAKE1)
IPVSADM_FLAGS = $(TARGET_CFLAGS) -fPIC -DLIBIPVS_USE_NL \
	`$(PKG_CONFIG_HOST_BINARY) --cflags libnl-genl-3.0`

define IPVSADM_BUILD_CMDS
	$(TARGET_MAKE_ENV) $(IPVSADM_MAKE) -C $(@D) \
		CC="$(TARGET_CC)" AR="$(TARGET_AR)" \
		CFLAGS="$(IPVSADM_FLAGS)" LDFLAGS="$(TARGET_LDFLAGS)" \
		LIBS="-lpopt `$(PKG_CONFIG_HOST_BINARY) --libs libnl-genl-3.0`"
endef

define IPVSADM_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 755 $(@D)/ipvsadm $(TARGET_DIR)/usr/sbin/ipvsadm
endef

$(eval $(generic-package))
