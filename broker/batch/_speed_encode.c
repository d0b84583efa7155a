/* Encoding of records: the second half of _speed.c. */

#include "_speed.h"

#define ROOM_BYTES_MIN 4096

/* A growing bytes object; used is what is written of it. */
typedef struct {
    PyObject *bytes;
    Py_ssize_t used;
} Writer;

static inline uint64_t
zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int
varint_size(int64_t value)
{
    uint64_t rest = zigzag(value);
    int size = 1;
    while (rest >= 0x80) {
        rest >>= 7;
        size++;
    }
    return size;
}

static inline uint8_t *
put_varint(uint8_t *at, int64_t value)
{
    uint64_t rest = zigzag(value);
    while (rest >= 0x80) {
        *at++ = (uint8_t)(rest & 0x7F) | 0x80;
        rest >>= 7;
    }
    *at++ = (uint8_t)rest;
    return at;
}

static inline uint8_t *
put_span_bytes(uint8_t *at, const Span *span)
{
    if (span->data == NULL)
        return put_varint(at, -1);
    at = put_varint(at, span->size);
    memcpy(at, span->data, (size_t)span->size);
    return at + span->size;
}

/* Room for `size` more bytes; NULL with an exception when there is none. */
static uint8_t *
reserve(Writer *writer, Py_ssize_t size)
{
    if (writer->bytes == NULL) {
        writer->bytes = PyBytes_FromStringAndSize(NULL, size + ROOM_BYTES_MIN);
        if (writer->bytes == NULL)
            return NULL;
    } else {
        Py_ssize_t room = PyBytes_GET_SIZE(writer->bytes);
        if (size > room - writer->used &&
            _PyBytes_Resize(&writer->bytes, room + room / 2 + size) < 0)
            return NULL;
    }
    return (uint8_t *)PyBytes_AS_STRING(writer->bytes) + writer->used;
}

static PyObject *
finish(Writer *writer)
{
    if (writer->bytes == NULL)
        return PyBytes_FromStringAndSize(NULL, 0);
    if (_PyBytes_Resize(&writer->bytes, writer->used) < 0)
        return NULL;
    return writer->bytes;
}

/* A field's bytes. The view is released by the caller; it stays empty for bytes and None. */
static int
hold_span(PyObject *object, Span *span, Py_buffer *view)
{
    view->obj = NULL;
    if (object == Py_None) {
        span->data = NULL;
        span->size = 0;
    } else if (PyBytes_CheckExact(object)) {
        span->data = (const uint8_t *)PyBytes_AS_STRING(object);
        span->size = PyBytes_GET_SIZE(object);
    } else {
        if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0)
            return -1;
        /* An empty view may have no address, which would read as null. */
        span->data = view->len ? view->buf : (const uint8_t *)"";
        span->size = view->len;
    }
    if (span->size > INT32_MAX)
        return refuse("a field is longer than 2 GiB");
    return 0;
}

static inline Py_ssize_t
span_room(const Span *span)
{
    return VARINT_BYTES_MAX + span->size;
}

static int
put_header(Writer *writer, PyObject *pair)
{
    PyObject *name, *data;
    if (!PyTuple_Check(pair)) {
        PyErr_SetString(PyExc_TypeError, "a header must be a tuple of name and value");
        return -1;
    }
    if (!PyArg_ParseTuple(pair, "UO;a header must be a tuple of name and value", &name, &data))
        return -1;
    PyObject *encoded = PyUnicode_AsEncodedString(name, "utf-8", "surrogateescape");
    if (encoded == NULL)
        return -1;
    int result = -1;
    Span name_span, value_span;
    Py_buffer name_view, value_view = {.obj = NULL};
    if (hold_span(encoded, &name_span, &name_view) < 0 ||
        hold_span(data, &value_span, &value_view) < 0)
        goto done;
    uint8_t *at = reserve(writer, span_room(&name_span) + span_room(&value_span));
    if (at == NULL)
        goto done;
    uint8_t *end = put_span_bytes(put_span_bytes(at, &name_span), &value_span);
    writer->used += end - at;
    result = 0;
done:
    PyBuffer_Release(&value_view);
    Py_DECREF(encoded);
    return result;
}

/* Header count and headers into a writer of their own: a record's size comes before them. */
static int
put_all_headers(Writer *writer, PyObject *headers)
{
    PyObject *items = PySequence_Tuple(headers);
    if (items == NULL)
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    uint8_t *at = reserve(writer, VARLONG_BYTES_MAX);
    int result = at == NULL ? -1 : 0;
    if (result == 0)
        writer->used += put_varint(at, count) - at;
    for (Py_ssize_t index = 0; index < count && result == 0; index++)
        result = put_header(writer, PyTuple_GET_ITEM(items, index));
    Py_DECREF(items);
    return result;
}

typedef struct {
    int64_t timestamp_delta;
    int64_t offset_delta;
    PyObject *key;
    PyObject *value;
    PyObject *headers;
} Fields;

static int
put_fields(Writer *writer, const Fields *fields, const Span *key, const Span *value, Span *headers)
{
    Py_ssize_t size = 1 + varint_size(fields->timestamp_delta) +
                      varint_size(fields->offset_delta) +
                      varint_size(key->data ? key->size : -1) + key->size +
                      varint_size(value->data ? value->size : -1) + value->size + headers->size;
    if (size > INT32_MAX)
        return refuse("a record is longer than 2 GiB");
    uint8_t *at = reserve(writer, VARINT_BYTES_MAX + size);
    if (at == NULL)
        return -1;
    uint8_t *end = put_varint(at, size);
    *end++ = 0;
    end = put_varint(end, fields->timestamp_delta);
    end = put_varint(end, fields->offset_delta);
    end = put_span_bytes(put_span_bytes(end, key), value);
    memcpy(end, headers->data, (size_t)headers->size);
    writer->used += end + headers->size - at;
    return 0;
}

static int
put_record(Writer *writer, const Fields *fields)
{
    Span key, value, headers = {(const uint8_t *)"", 1};
    Py_buffer key_view, value_view = {.obj = NULL};
    Writer header_writer = {NULL, 0};
    int result = -1;
    int empty = PyTuple_CheckExact(fields->headers) && PyTuple_GET_SIZE(fields->headers) == 0;
    if (hold_span(fields->key, &key, &key_view) < 0 ||
        hold_span(fields->value, &value, &value_view) < 0)
        goto done;
    if (!empty) {
        if (put_all_headers(&header_writer, fields->headers) < 0)
            goto done;
        headers.data = (const uint8_t *)PyBytes_AS_STRING(header_writer.bytes);
        headers.size = header_writer.used;
    }
    result = put_fields(writer, fields, &key, &value, &headers);
done:
    Py_XDECREF(header_writer.bytes);
    PyBuffer_Release(&key_view);
    PyBuffer_Release(&value_view);
    return result;
}

static int
timestamp_delta(long long timestamp, long long base, int64_t *delta)
{
    long long result;
    if (__builtin_sub_overflow(timestamp, base, &result))
        return refuse("timestamps of one batch are more than 64 bits apart");
    *delta = result;
    return 0;
}

static int
put_row(Writer *writer, PyObject *row, Py_ssize_t index, long long *base, long long *largest)
{
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) != 4) {
        PyErr_SetString(PyExc_TypeError, "a row must be a tuple of key, value, headers, timestamp");
        return -1;
    }
    long long timestamp = PyLong_AsLongLong(PyTuple_GET_ITEM(row, 3));
    if (timestamp == -1 && PyErr_Occurred())
        return -1;
    if (index == 0)
        *base = *largest = timestamp;
    if (timestamp > *largest)
        *largest = timestamp;
    Fields fields = {0, index, PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 1),
                     PyTuple_GET_ITEM(row, 2)};
    if (timestamp_delta(timestamp, *base, &fields.timestamp_delta) < 0)
        return -1;
    return put_record(writer, &fields);
}

PyObject *
encode_rows(PyObject *Py_UNUSED(module), PyObject *rows)
{
    PyObject *items = PySequence_Tuple(rows);
    if (items == NULL)
        return NULL;
    Writer writer = {NULL, 0};
    long long base = -1, largest = -1;
    for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(items); index++) {
        if (put_row(&writer, PyTuple_GET_ITEM(items, index), index, &base, &largest) < 0) {
            Py_DECREF(items);
            Py_XDECREF(writer.bytes);
            return NULL;
        }
    }
    Py_DECREF(items);
    PyObject *section = finish(&writer);
    return section == NULL ? NULL : Py_BuildValue("NLL", section, base, largest);
}

static int
put_kept(Writer *writer, PyObject *row, long long base_offset, long long base_timestamp)
{
    long long offset, timestamp;
    Fields fields;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a record must be a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(
            row, "LLOOO;a record has five fields", &offset, &timestamp, &fields.key,
            &fields.value, &fields.headers))
        return -1;
    if (offset < base_offset || base_offset < 0 || offset - base_offset > INT32_MAX)
        return refuse("offset is outside its batch");
    fields.offset_delta = offset - base_offset;
    if (timestamp_delta(timestamp, base_timestamp, &fields.timestamp_delta) < 0)
        return -1;
    return put_record(writer, &fields);
}

PyObject *
encode_kept(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *records;
    long long base_offset, base_timestamp;
    if (!PyArg_ParseTuple(arguments, "OLL", &records, &base_offset, &base_timestamp))
        return NULL;
    PyObject *items = PySequence_Tuple(records);
    if (items == NULL)
        return NULL;
    Writer writer = {NULL, 0};
    for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(items); index++) {
        PyObject *row = PyTuple_GET_ITEM(items, index);
        if (put_kept(&writer, row, base_offset, base_timestamp) < 0) {
            Py_DECREF(items);
            Py_XDECREF(writer.bytes);
            return NULL;
        }
    }
    Py_DECREF(items);
    return finish(&writer);
}
