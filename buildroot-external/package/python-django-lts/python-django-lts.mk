################################################################################
#
# python-django-lts
#
################################################################################

# The version that webui/requirements.txt names for the developer image, too.
PYTHON_DJANGO_LTS_VERSION = 5.2.19
PYTHON_DJANGO_LTS_SOURCE = django-$(PYTHON_DJANGO_LTS_VERSION).tar.gz
# pip fetched it from the Python package index (board/common/stage.py)
PYTHON_DJANGO_LTS_SITE = file://$(FAIRLEAD_STAGE)/downloads
PYTHON_DJANGO_LTS_SETUP_TYPE = setuptools
PYTHON_DJANGO_LTS_LICENSE = BSD-3-Clause, MIT (utils/archive.py)
PYTHON_DJANGO_LTS_LICENSE_FILES = LICENSE django/dispatch/license.txt django/utils/archive.py
PYTHON_DJANGO_LTS_CPE_ID_VENDOR = djangoproject
PYTHON_DJANGO_LTS_CPE_ID_PRODUCT = django
# It asks for a newer setuptools than Buildroot has, and builds with that one as well.
PYTHON_DJANGO_LTS_BUILD_OPTS = --skip-dependency-check

$(eval $(python-package))
