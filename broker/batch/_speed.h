/* What encoding and decoding of records share; see _speed.c. */

#ifndef MILLSTREAM_SPEED_H
#define MILLSTREAM_SPEED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define VARINT_BYTES_MAX 5
#define VARLONG_BYTES_MAX 10

/* A key, value, header key or header value; data is NULL for null. */
typedef struct {
    const uint8_t *data;
    Py_ssize_t size;
} Span;

static inline int
refuse(const char *message)
{
    PyErr_SetString(PyExc_ValueError, message);
    return -1;
}

PyObject *encode_rows(PyObject *module, PyObject *rows);
PyObject *encode_kept(PyObject *module, PyObject *arguments);

#endif
