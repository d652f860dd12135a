################################################################################
#
# ldirectord
#
################################################################################

LDIRECTORD_VERSION = 4.16.0
LDIRECTORD_SITE = $(call github,ClusterLabs,resource-agents,v$(LDIRECTORD_VERSION))
LDIRECTORD_LICENSE = GPL-2.0+
LDIRECTORD_LICENSE_FILES = COPYING

# One Perl script of a large project: its build system would ask for cluster software that the box has no use for.
define LDIRECTORD_BUILD_CMDS
	sed -e 's|@sysconfdir@|/etc|g' -e 's|@sbindir@|/usr/sbin|g' \
		$(@D)/ldirectord/ldirectord.in >$(@D)/ldirectord.pl
endef

define LDIRECTORD_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 755 $(@D)/ldirectord.pl $(TARGET_DIR)/usr/sbin/ldirectord
endef

$(eval $(generic-package))
