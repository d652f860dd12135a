################################################################################
#
# fairlead
#
################################################################################

FAIRLEAD_VERSION = $(shell cat $(BR2_EXTERNAL_FAIRLEAD_PATH)/../overlay/usr/lib/fairlead/VERSION)
FAIRLEAD_SITE = $(FAIRLEAD_STAGE)/fairlead
FAIRLEAD_SITE_METHOD = local
FAIRLEAD_LICENSE = GPL-2.0+, MIT, 0BSD
FAIRLEAD_LICENSE_FILES = LICENSE licenses/pico.txt licenses/htmx.txt
FAIRLEAD_DEPENDENCIES = host-python3

define FAIRLEAD_INSTALL_TARGET_CMDS
	rm -rf $(TARGET_DIR)/usr/lib/fairlead/webui $(TARGET_DIR)/usr/lib/fairlead/static
	mkdir -p $(TARGET_DIR)/usr/lib/fairlead
	cp -R $(@D)/webui $(@D)/static $(@D)/guide.json $(@D)/new.sqlite3 $(TARGET_DIR)/usr/lib/fairlead/
	$(HOST_DIR)/bin/python3 -m compileall -q --invalidation-mode=unchecked-hash \
		-s $(TARGET_DIR) -p / $(TARGET_DIR)/usr/lib/fairlead/webui
endef

$(eval $(generic-package))
