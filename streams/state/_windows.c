/* The usual way of a record through a timestamped window store.

A row is: segment 8 | key | start 8 | 0 4 -> time 8 | value, all numbers big-endian. Keys that are
texts in UTF-8 are written in place, others by their serde. Whatever is not usual (a key or value
that a serde refuses, rows that are asked for by group, a window that is not the newest) goes to the
functions of streams/state/window.py, which do the same and more.
*/

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define PREFIX 8
#define SUFFIX 12
#define TIME 8

typedef struct {
    PyObject_HEAD
    PyObject *expiry, *buffer, *clean, *groups, *dirty;
    PyObject *encode_key, *encode_value, *decode_value, *plain_get, *plain_put;
    int texts; /* keys are texts, and encode_key is not asked */
    long long retention_ms, interval_ms, entry_bytes;
    PyObject *key, *row; /* of the last get */
    long long start_ms;
} Windows;

static PyObject *observed_name, *missing_name, *young_name, *older_name, *asked_name, *sorted_name,
    *dirty_bytes_name, *filling_name;

static void
write_long(char *to, long long number)
{
    for (int index = 0; index < 8; index++)
        to[index] = (char)((uint64_t)number >> (56 - 8 * index));
}

static long long
read_long(const char *from)
{
    uint64_t number = 0;
    for (int index = 0; index < 8; index++)
        number = number << 8 | (uint8_t)from[index];
    return (long long)number;
}

/* An attribute that is a whole number; -1 with an error set when it is none. */
static long long
number_of(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(object, name);
    if (found == NULL)
        return -1;
    long long number = PyLong_AsLongLong(found);
    Py_DECREF(found);
    return number;
}

static PyObject *
row_around(Windows *self, const char *key, Py_ssize_t size, long long start_ms)
{
    PyObject *row = PyBytes_FromStringAndSize(NULL, PREFIX + size + SUFFIX);
    if (row == NULL)
        return NULL;
    char *at = PyBytes_AS_STRING(row);
    write_long(at, start_ms / self->interval_ms);
    memcpy(at + PREFIX, key, (size_t)size);
    write_long(at + PREFIX + size, start_ms);
    memset(at + PREFIX + size + TIME, 0, SUFFIX - TIME);
    return row;
}

/* The row of a window; NULL if the key cannot be bytes. */
static PyObject *
row_of(Windows *self, PyObject *key, long long start_ms)
{
    if (self->texts) {
        Py_ssize_t size;
        const char *text = PyUnicode_CheckExact(key) ? PyUnicode_AsUTF8AndSize(key, &size) : NULL;
        return text == NULL ? NULL : row_around(self, text, size, start_ms);
    }
    PyObject *raw = PyObject_CallOneArg(self->encode_key, key), *row = NULL;
    if (raw != NULL && PyBytes_CheckExact(raw))
        row = row_around(self, PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw), start_ms);
    Py_XDECREF(raw);
    return row;
}

/* Whether a key cannot change in place, so that the same object has the same bytes. A tuple is
   looked into only so far: the serdes of those keys are ours, and take rows of plain values. */
static int
is_unchanging(PyObject *key)
{
    if (PyUnicode_CheckExact(key) || PyBytes_CheckExact(key) || PyLong_CheckExact(key))
        return 1;
    if (!PyTuple_CheckExact(key))
        return 0;
    for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(key); index++) {
        PyObject *each = PyTuple_GET_ITEM(key, index);
        if (!(each == Py_None || PyUnicode_CheckExact(each) || PyBytes_CheckExact(each) ||
              PyLong_CheckExact(each) || PyFloat_CheckExact(each) || PyBool_Check(each)))
            return 0;
    }
    return 1;
}

/* Where a row is: its value (borrowed), Py_None if there is none, NULL if Python must look. */
static PyObject *
find(Windows *self, PyObject *row, long long start_ms)
{
    PyObject *found = PyDict_GetItemWithError(self->dirty, row);
    if (found != NULL || PyErr_Occurred())
        return found;
    PyObject *young = PyObject_GetAttr(self->clean, young_name);
    if (young == NULL)
        return NULL;
    found = PyDict_GetItemWithError(young, row);
    Py_DECREF(young); /* the cache has it */
    if (found != NULL || PyErr_Occurred())
        return found;
    PyObject *older = PyObject_GetAttr(self->clean, older_name);
    if (older == NULL)
        return NULL;
    for (Py_ssize_t index = 0; index < PyList_GET_SIZE(older) && found == NULL; index++) {
        found = PyDict_GetItemWithError(PyList_GET_ITEM(older, index), row);
        if (PyErr_Occurred())
            break;
    }
    Py_DECREF(older); /* the cache has it, too */
    if (found != NULL) {
        PyObject *filling = PyObject_GetAttr(self->clean, filling_name);
        Py_XDECREF(filling);
        return filling == Py_False ? found : NULL; /* it moves to the young ones */
    }
    if (PyErr_Occurred())
        return NULL;
    long long missing_ms = number_of(self->clean, missing_name);
    return start_ms > missing_ms && !PyErr_Occurred() ? Py_None : NULL;
}

static PyObject *
get(Windows *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyLong_CheckExact(arguments[1]))
        return PyObject_Vectorcall(self->plain_get, arguments, (size_t)count, NULL);
    PyObject *key = arguments[0];
    long long start_ms = PyLong_AsLongLong(arguments[1]);
    long long observed_ms = number_of(self->expiry, observed_name);
    if (PyErr_Occurred())
        goto plain;
    if (start_ms < 0 || start_ms <= observed_ms - self->retention_ms)
        Py_RETURN_NONE;
    PyObject *row = row_of(self, key, start_ms);
    if (row == NULL)
        goto plain;
    Py_XSETREF(self->key, is_unchanging(key) ? Py_NewRef(key) : NULL);
    Py_XSETREF(self->row, row);
    self->start_ms = start_ms;
    PyObject *found = find(self, row, start_ms);
    if (found == Py_None)
        Py_RETURN_NONE;
    if (found == NULL || !PyBytes_CheckExact(found) || PyBytes_GET_SIZE(found) < TIME)
        goto plain;
    const char *data = PyBytes_AS_STRING(found);
    long long time_ms = read_long(data);
    PyObject *raw = PyBytes_FromStringAndSize(data + TIME, PyBytes_GET_SIZE(found) - TIME);
    if (raw == NULL)
        return NULL;
    PyObject *value = PyObject_CallOneArg(self->decode_value, raw);
    Py_DECREF(raw);
    if (value == NULL)
        goto plain;
    return Py_BuildValue("(NL)", value, time_ms);

plain: /* its errors are the better ones */
    PyErr_Clear();
    return PyObject_Vectorcall(self->plain_get, arguments, (size_t)count, NULL);
}

/* Whether a put is into the window that was just read, the newest of all, and nobody asks for
   anything but rows. */
static int
is_usual(Windows *self, PyObject *const *arguments)
{
    if (arguments[0] != self->key || arguments[1] == Py_None || !PyLong_CheckExact(arguments[2]) ||
        !PyLong_CheckExact(arguments[3]))
        return 0;
    long long start_ms = PyLong_AsLongLong(arguments[3]);
    if (start_ms != self->start_ms || start_ms != number_of(self->expiry, observed_name))
        return 0;
    PyObject *asked = PyObject_GetAttr(self->groups, asked_name);
    PyObject *sorted = PyObject_GetAttr(self->buffer, sorted_name);
    int usual = asked == Py_False && sorted == Py_None;
    Py_XDECREF(asked);
    Py_XDECREF(sorted);
    return usual;
}

/* The time and the value; NULL if the serde does not give bytes. */
static PyObject *
data_of(Windows *self, PyObject *value, PyObject *timestamp_ms)
{
    long long time_ms = PyLong_AsLongLong(timestamp_ms);
    if (time_ms == -1 && PyErr_Occurred())
        return NULL;
    PyObject *raw = PyObject_CallOneArg(self->encode_value, value);
    if (raw == NULL)
        return NULL;
    PyObject *data = NULL;
    if (PyBytes_CheckExact(raw)) {
        Py_ssize_t size = PyBytes_GET_SIZE(raw);
        data = PyBytes_FromStringAndSize(NULL, TIME + size);
        if (data != NULL) {
            write_long(PyBytes_AS_STRING(data), time_ms);
            memcpy(PyBytes_AS_STRING(data) + TIME, PyBytes_AS_STRING(raw), (size_t)size);
        }
    }
    Py_DECREF(raw);
    return data;
}

static int
write_row(Windows *self, PyObject *row, PyObject *data)
{
    long long more = PyBytes_GET_SIZE(data);
    PyObject *old = PyDict_GetItemWithError(self->dirty, row);
    if (old == NULL) {
        if (PyErr_Occurred())
            return -1;
        more += self->entry_bytes + PyBytes_GET_SIZE(row);
    }
    else if (old != Py_None)
        more -= PyBytes_GET_SIZE(old);
    if (PyDict_SetItem(self->dirty, row, data) < 0)
        return -1;
    long long before = number_of(self->buffer, dirty_bytes_name);
    if (before == -1 && PyErr_Occurred())
        return -1;
    PyObject *size = PyLong_FromLongLong(before + more);
    if (size == NULL)
        return -1;
    int status = PyObject_SetAttr(self->buffer, dirty_bytes_name, size);
    Py_DECREF(size);
    return status;
}

static PyObject *
put(Windows *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count == 4 && self->row != NULL && is_usual(self, arguments)) {
        PyObject *row = Py_NewRef(self->row), *result = NULL;
        PyObject *data = data_of(self, arguments[1], arguments[2]);
        if (data != NULL && write_row(self, row, data) == 0)
            result = PyLong_FromSsize_t(PyBytes_GET_SIZE(row) + PyBytes_GET_SIZE(data));
        Py_DECREF(row);
        if (data != NULL) {
            Py_DECREF(data);
            return result;
        }
    }
    PyErr_Clear();
    return PyObject_Vectorcall(self->plain_put, arguments, (size_t)count, NULL);
}

/* What the changelog gets of a row; NULL with an error set. */
static PyObject *
change_of(PyObject *row, PyObject *data, PyObject *headers)
{
    if (!PyBytes_CheckExact(row) || PyBytes_GET_SIZE(row) < PREFIX + SUFFIX ||
        (data != Py_None && (!PyBytes_CheckExact(data) || PyBytes_GET_SIZE(data) < TIME))) {
        PyErr_SetString(PyExc_ValueError, "not a row of a window");
        return NULL;
    }
    const char *key = PyBytes_AS_STRING(row);
    Py_ssize_t size = PyBytes_GET_SIZE(row);
    if (data == Py_None)
        return Py_BuildValue("(y#OOL)", key + PREFIX, size - PREFIX, data, headers,
                             read_long(key + size - SUFFIX));
    const char *value = PyBytes_AS_STRING(data);
    return Py_BuildValue("(y#y#OL)", key + PREFIX, size - PREFIX, value + TIME,
                         PyBytes_GET_SIZE(data) - TIME, headers, read_long(value));
}

static PyObject *
changes(Windows *self, PyObject *headers)
{
    PyObject *found = PyList_New(0), *row, *data;
    Py_ssize_t place = 0;
    while (found != NULL && PyDict_Next(self->dirty, &place, &row, &data)) {
        PyObject *change = change_of(row, data, headers);
        if (change == NULL || PyList_Append(found, change) < 0)
            Py_CLEAR(found);
        Py_XDECREF(change);
    }
    return found;
}

static int
traverse(Windows *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->expiry);
    Py_VISIT(self->buffer);
    Py_VISIT(self->clean);
    Py_VISIT(self->groups);
    Py_VISIT(self->dirty);
    Py_VISIT(self->encode_key);
    Py_VISIT(self->encode_value);
    Py_VISIT(self->decode_value);
    Py_VISIT(self->plain_get);
    Py_VISIT(self->plain_put);
    Py_VISIT(self->key);
    Py_VISIT(self->row);
    return 0;
}

static int
clear(Windows *self)
{
    Py_CLEAR(self->expiry);
    Py_CLEAR(self->buffer);
    Py_CLEAR(self->clean);
    Py_CLEAR(self->groups);
    Py_CLEAR(self->dirty);
    Py_CLEAR(self->encode_key);
    Py_CLEAR(self->encode_value);
    Py_CLEAR(self->decode_value);
    Py_CLEAR(self->plain_get);
    Py_CLEAR(self->plain_put);
    Py_CLEAR(self->key);
    Py_CLEAR(self->row);
    return 0;
}

static void
dealloc(Windows *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyObject *
make(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords))
{
    PyObject *expiry, *buffer, *clean, *groups, *dirty, *plain_get, *plain_put;
    PyObject *encode_key, *encode, *decode;
    long long retention_ms, interval_ms, entry_bytes;
    if (!PyArg_ParseTuple(arguments, "OOOOO!(OOO)(OO)(LLL)", &expiry, &buffer, &clean, &groups,
                          &PyDict_Type, &dirty, &encode_key, &encode, &decode, &plain_get,
                          &plain_put, &retention_ms, &interval_ms, &entry_bytes))
        return NULL;
    Windows *self = (Windows *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->expiry = Py_NewRef(expiry);
    self->buffer = Py_NewRef(buffer);
    self->clean = Py_NewRef(clean);
    self->groups = Py_NewRef(groups);
    self->dirty = Py_NewRef(dirty);
    self->texts = encode_key == Py_None;
    self->encode_key = Py_NewRef(encode_key);
    self->encode_value = Py_NewRef(encode);
    self->decode_value = Py_NewRef(decode);
    self->plain_get = Py_NewRef(plain_get);
    self->plain_put = Py_NewRef(plain_put);
    self->retention_ms = retention_ms;
    self->interval_ms = interval_ms;
    self->entry_bytes = entry_bytes;
    return (PyObject *)self;
}

static PyMethodDef methods[] = {
    {"get", (PyCFunction)(void (*)(void))get, METH_FASTCALL, "Value and time of a window."},
    {"put", (PyCFunction)(void (*)(void))put, METH_FASTCALL, "Set value and time of a window."},
    {"changes", (PyCFunction)changes, METH_O, "Rows for the changelog, with these headers."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, make},           {Py_tp_dealloc, dealloc}, {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},        {Py_tp_methods, methods}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "streams.state._windows.Windows",
    .basicsize = sizeof(Windows),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static int
start(PyObject *module)
{
    observed_name = PyUnicode_InternFromString("observed_ms");
    missing_name = PyUnicode_InternFromString("missing_until_ms");
    young_name = PyUnicode_InternFromString("young");
    older_name = PyUnicode_InternFromString("older");
    asked_name = PyUnicode_InternFromString("are_asked_for");
    sorted_name = PyUnicode_InternFromString("sorted_keys");
    dirty_bytes_name = PyUnicode_InternFromString("dirty_bytes");
    filling_name = PyUnicode_InternFromString("is_filling");
    if (PyErr_Occurred())
        return -1;
    PyObject *type = PyType_FromSpec(&spec);
    if (type == NULL)
        return -1;
    int status = PyModule_AddObjectRef(module, "Windows", type);
    Py_DECREF(type);
    return status;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, start}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "streams.state._windows",
    .m_doc = "Reads and writes of timestamped window stores in C.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit__windows(void)
{
    return PyModuleDef_Init(&definition);
}
