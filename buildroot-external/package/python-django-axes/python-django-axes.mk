################################################################################
#
# python-django-axes
#
################################################################################

PYTHON_DJANGO_AXES_VERSION = 8.3.1
PYTHON_DJANGO_AXES_SOURCE = django_axes-$(PYTHON_DJANGO_AXES_VERSION).tar.gz
# pip fetched it from the Python package index (board/common/stage.py)
PYTHON_DJANGO_AXES_SITE = file://$(FAIRLEAD_STAGE)/downloads
PYTHON_DJANGO_AXES_SETUP_TYPE = setuptools
PYTHON_DJANGO_AXES_LICENSE = MIT
PYTHON_DJANGO_AXES_LICENSE_FILES = LICENSE
PYTHON_DJANGO_AXES_DEPENDENCIES = host-python-setuptools-scm
PYTHON_DJANGO_AXES_ENV = SETUPTOOLS_SCM_PRETEND_VERSION=$(PYTHON_DJANGO_AXES_VERSION)

$(eval $(python-package))
