# What `make image` put together before Buildroot started (see board/common/stage.py).
FAIRLEAD_STAGE = $(BR2_EXTERNAL_FAIRLEAD_PATH)/../build/image

include $(sort $(wildcard $(BR2_EXTERNAL_FAIRLEAD_PATH)/package/*/*.mk))
