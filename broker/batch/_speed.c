/* The records section of a batch in C: the functions of broker/batch/records.py, same results.

   The layout of a record is at the top of broker/batch/layout.py. The bytes come from outside:
   every read goes through a cursor that knows its end, and anything that is no record raises
   ValueError. Nothing here keeps state. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define VARINT_BYTES_MAX 5
#define VARLONG_BYTES_MAX 10
#define RECORD_BYTES_MIN 7
#define ROOM_BYTES_MIN 4096

/* --- reading ------------------------------------------------------------------------------- */

typedef struct {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
} Cursor;

/* What the batch around the records says. */
typedef struct {
    Py_ssize_t count;
    long long last_offset_delta;
    long long base_offset;
    long long base_timestamp;
    int fixed_timestamp;
} Section;

/* A key, value, header key or header value; data is NULL for null. */
typedef struct {
    const uint8_t *data;
    Py_ssize_t size;
} Span;

typedef struct {
    long long offset;
    long long timestamp;
    Span key;
    Span value;
    PyObject *headers; /* new reference */
} Record;

static int
refuse(const char *message)
{
    PyErr_SetString(PyExc_ValueError, message);
    return -1;
}

static int
read_varlong(Cursor *cursor, int bytes_max, int64_t *result)
{
    uint64_t value = 0;
    for (int index = 0; index < bytes_max; index++) {
        if (cursor->at >= cursor->end)
            return refuse("the last record is cut short");
        uint8_t byte = *cursor->at++;
        /* The last byte of the longest form has room for the top bits only. */
        if (index == VARLONG_BYTES_MAX - 1 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7F) << (7 * index);
        if (byte < 0x80) {
            if (bytes_max == VARINT_BYTES_MAX && value >> 32)
                break;
            *result = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
            return 0;
        }
    }
    return refuse("varint is too long");
}

static inline int
read_varint(Cursor *cursor, int64_t *result)
{
    if (cursor->at < cursor->end && *cursor->at < 0x80) {
        uint8_t byte = *cursor->at++;
        *result = (int64_t)(byte >> 1) ^ -(int64_t)(byte & 1);
        return 0;
    }
    return read_varlong(cursor, VARINT_BYTES_MAX, result);
}

static inline int
read_span(Cursor *cursor, Span *span)
{
    int64_t size;
    if (read_varint(cursor, &size) < 0)
        return -1;
    if (size == -1) {
        span->data = NULL;
        span->size = 0;
        return 0;
    }
    if (size < 0)
        return refuse("size is negative");
    if (size > cursor->end - cursor->at)
        return refuse("a field passes the end of its record");
    span->data = cursor->at;
    span->size = (Py_ssize_t)size;
    cursor->at += size;
    return 0;
}

static inline PyObject *
span_bytes(const Span *span)
{
    if (span->data == NULL)
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize((const char *)span->data, span->size);
}

static PyObject *
read_header(Cursor *cursor)
{
    Span name, value;
    if (read_span(cursor, &name) < 0)
        return NULL;
    if (name.data == NULL) {
        refuse("header key is null");
        return NULL;
    }
    if (read_span(cursor, &value) < 0)
        return NULL;
    PyObject *text = PyUnicode_DecodeUTF8((const char *)name.data, name.size, "surrogateescape");
    if (text == NULL)
        return NULL;
    PyObject *data = span_bytes(&value);
    PyObject *pair = data == NULL ? NULL : PyTuple_Pack(2, text, data);
    Py_DECREF(text);
    Py_XDECREF(data);
    return pair;
}

static PyObject *
read_headers(Cursor *cursor)
{
    int64_t count;
    if (read_varint(cursor, &count) < 0)
        return NULL;
    /* A header takes two bytes at least, so a larger count is refused before it is allocated. */
    if (count < 0 || count > (cursor->end - cursor->at) / 2) {
        refuse("headers do not fit in their record");
        return NULL;
    }
    PyObject *headers = PyTuple_New((Py_ssize_t)count);
    if (headers == NULL)
        return NULL;
    for (Py_ssize_t index = 0; index < (Py_ssize_t)count; index++) {
        PyObject *pair = read_header(cursor);
        if (pair == NULL) {
            Py_DECREF(headers);
            return NULL;
        }
        PyTuple_SET_ITEM(headers, index, pair);
    }
    return headers;
}

static int
read_record(Cursor *section_cursor, const Section *section, Record *record)
{
    int64_t size, delta, offset_delta;
    if (read_varint(section_cursor, &size) < 0)
        return -1;
    if (size < 1 || size > section_cursor->end - section_cursor->at)
        return refuse("a record passes the end");
    /* The attributes byte is unused. */
    Cursor cursor = {
        section_cursor->start, section_cursor->at + 1, section_cursor->at + size};
    if (read_varlong(&cursor, VARLONG_BYTES_MAX, &delta) < 0)
        return -1;
    if (read_varint(&cursor, &offset_delta) < 0)
        return -1;
    if (offset_delta < 0 || offset_delta > section->last_offset_delta)
        return refuse("offset delta is outside the batch");
    record->offset = section->base_offset + offset_delta;
    if (section->fixed_timestamp)
        record->timestamp = section->base_timestamp;
    else if (__builtin_add_overflow(section->base_timestamp, (long long)delta, &record->timestamp))
        return refuse("timestamp is outside 64 bits");
    if (read_span(&cursor, &record->key) < 0 || read_span(&cursor, &record->value) < 0)
        return -1;
    record->headers = read_headers(&cursor);
    if (record->headers == NULL)
        return -1;
    if (cursor.at != cursor.end) {
        Py_DECREF(record->headers);
        return refuse("a record ends before its size");
    }
    section_cursor->at = cursor.end;
    return 0;
}

static int
parse_section(PyObject *tuple, Py_ssize_t data_size, Section *section)
{
    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "section must be a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(
            tuple, "nLLLp;section", &section->count, &section->last_offset_delta,
            &section->base_offset, &section->base_timestamp, &section->fixed_timestamp))
        return -1;
    if (section->count < 0 || section->count > data_size / RECORD_BYTES_MIN)
        return refuse("there are fewer bytes than the records need");
    long long last_offset;
    if (__builtin_add_overflow(section->base_offset, section->last_offset_delta, &last_offset))
        return refuse("offset is outside 64 bits");
    return 0;
}

static int
check_end(const Cursor *cursor)
{
    return cursor->at == cursor->end ? 0 : refuse("bytes follow the last record");
}

/* --- decoding to rows ---------------------------------------------------------------------- */

typedef struct {
    PyTypeObject *type;
    PyObject *prefix; /* items that come before those of the record, equal in all rows */
} RowShape;

static PyObject *
make_row(const RowShape *shape, Record *record)
{
    /* The row type is a named tuple: a tuple with other names for its items. */
    Py_ssize_t first = PyTuple_GET_SIZE(shape->prefix);
    PyObject *row = shape->type->tp_alloc(shape->type, first + 5);
    if (row == NULL) {
        Py_DECREF(record->headers);
        return NULL;
    }
    for (Py_ssize_t index = 0; index < first; index++) {
        PyObject *item = PyTuple_GET_ITEM(shape->prefix, index);
        Py_INCREF(item);
        PyTuple_SET_ITEM(row, index, item);
    }
    PyTuple_SET_ITEM(row, first + 4, record->headers);
    PyObject *offset = PyLong_FromLongLong(record->offset);
    PyTuple_SET_ITEM(row, first, offset);
    PyObject *timestamp = PyLong_FromLongLong(record->timestamp);
    PyTuple_SET_ITEM(row, first + 1, timestamp);
    PyObject *key = span_bytes(&record->key);
    PyTuple_SET_ITEM(row, first + 2, key);
    PyObject *value = span_bytes(&record->value);
    PyTuple_SET_ITEM(row, first + 3, value);
    if (offset == NULL || timestamp == NULL || key == NULL || value == NULL) {
        Py_DECREF(row);
        return NULL;
    }
    /* Nothing in it can refer back to it, and the garbage collector's visits would cost more than
       decoding does. */
    PyObject_GC_UnTrack(row);
    return row;
}

static int
fill_rows(PyObject *rows, Cursor *cursor, const Section *section, const RowShape *shape)
{
    for (Py_ssize_t index = 0; index < section->count; index++) {
        Record record;
        if (read_record(cursor, section, &record) < 0)
            return -1;
        PyObject *row = make_row(shape, &record);
        if (row == NULL)
            return -1;
        PyList_SET_ITEM(rows, index, row);
    }
    return check_end(cursor);
}

static PyObject *
decode_rows(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    PyObject *tuple;
    RowShape shape = {NULL, NULL};
    if (!PyArg_ParseTuple(
            arguments, "y*OO!|O!", &data, &tuple, &PyType_Type, &shape.type, &PyTuple_Type,
            &shape.prefix))
        return NULL;
    PyObject *rows = NULL;
    PyObject *nothing = PyTuple_New(0);
    if (nothing == NULL)
        goto done;
    if (shape.prefix == NULL)
        shape.prefix = nothing;
    Section section;
    if (!PyType_IsSubtype(shape.type, &PyTuple_Type) ||
        shape.type->tp_basicsize != PyTuple_Type.tp_basicsize) {
        PyErr_SetString(PyExc_TypeError, "row type must be a named tuple");
        goto done;
    }
    if (parse_section(tuple, data.len, &section) < 0)
        goto done;
    rows = PyList_New(section.count);
    if (rows == NULL)
        goto done;
    const uint8_t *start = data.buf;
    Cursor cursor = {start, start, start + data.len};
    if (fill_rows(rows, &cursor, &section, &shape) < 0)
        Py_CLEAR(rows);
done:
    Py_XDECREF(nothing);
    PyBuffer_Release(&data);
    return rows;
}

/* --- decoding to columns ------------------------------------------------------------------- */

#define COLUMNS_LONG 2
#define COLUMNS_INT 4

typedef struct {
    Py_buffer buffers[COLUMNS_LONG + COLUMNS_INT];
    int held;
} Columns;

static int
hold_arrays(Columns *columns, PyObject *arrays, Py_ssize_t expected, Py_ssize_t bytes_min)
{
    PyObject *items = PySequence_Tuple(arrays);
    if (items == NULL)
        return -1;
    int result = -1;
    if (PyTuple_GET_SIZE(items) != expected) {
        PyErr_SetString(PyExc_TypeError, "wrong number of arrays");
        goto done;
    }
    for (Py_ssize_t index = 0; index < expected; index++) {
        Py_buffer *buffer = &columns->buffers[columns->held];
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(items, index), buffer, PyBUF_WRITABLE) < 0)
            goto done;
        columns->held++;
        if (buffer->len < bytes_min) {
            PyErr_SetString(PyExc_TypeError, "array is shorter than the batch");
            goto done;
        }
    }
    result = 0;
done:
    Py_DECREF(items);
    return result;
}

static void
release_arrays(Columns *columns)
{
    for (int index = 0; index < columns->held; index++)
        PyBuffer_Release(&columns->buffers[index]);
}

static inline void
put_span(const Columns *columns, int first, Py_ssize_t row, const Cursor *cursor, const Span *span)
{
    int32_t *starts = columns->buffers[first].buf;
    int32_t *ends = columns->buffers[first + 1].buf;
    if (span->data == NULL) {
        starts[row] = ends[row] = -1;
    } else {
        starts[row] = (int32_t)(span->data - cursor->start);
        ends[row] = (int32_t)(span->data - cursor->start + span->size);
    }
}

/* Put one record's headers into the list, which is made when the first record has any. */
static int
put_headers(PyObject **list, Py_ssize_t row, Py_ssize_t count, PyObject *headers)
{
    if (*list == NULL) {
        if (PyTuple_GET_SIZE(headers) == 0) {
            Py_DECREF(headers);
            return 0;
        }
        *list = PyList_New(count);
        if (*list == NULL) {
            Py_DECREF(headers);
            return -1;
        }
        for (Py_ssize_t index = 0; index < count; index++) {
            PyObject *empty = PyTuple_New(0);
            if (empty == NULL) {
                Py_DECREF(headers);
                return -1;
            }
            PyList_SET_ITEM(*list, index, empty);
        }
    }
    return PyList_SetItem(*list, row, headers);
}

static int
fill_columns(Columns *columns, Cursor *cursor, const Section *section, PyObject **headers)
{
    int64_t *offsets = columns->buffers[0].buf;
    int64_t *timestamps = columns->buffers[1].buf;
    for (Py_ssize_t row = 0; row < section->count; row++) {
        Record record;
        if (read_record(cursor, section, &record) < 0)
            return -1;
        offsets[row] = record.offset;
        timestamps[row] = record.timestamp;
        put_span(columns, COLUMNS_LONG, row, cursor, &record.key);
        put_span(columns, COLUMNS_LONG + 2, row, cursor, &record.value);
        if (put_headers(headers, row, section->count, record.headers) < 0)
            return -1;
    }
    return check_end(cursor);
}

static PyObject *
decode_arrays(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    PyObject *tuple, *longs, *ints;
    if (!PyArg_ParseTuple(arguments, "y*OOO", &data, &tuple, &longs, &ints))
        return NULL;
    PyObject *headers = NULL;
    Columns columns = {.held = 0};
    Section section;
    int failed = 1;
    if (parse_section(tuple, data.len, &section) < 0)
        goto done;
    if (data.len > INT32_MAX) {
        refuse("records take more than 2 GiB");
        goto done;
    }
    if (hold_arrays(&columns, longs, COLUMNS_LONG, section.count * 8) < 0 ||
        hold_arrays(&columns, ints, COLUMNS_INT, section.count * 4) < 0)
        goto done;
    const uint8_t *start = data.buf;
    Cursor cursor = {start, start, start + data.len};
    failed = fill_columns(&columns, &cursor, &section, &headers) < 0;
done:
    release_arrays(&columns);
    PyBuffer_Release(&data);
    if (failed) {
        Py_XDECREF(headers);
        return NULL;
    }
    return headers == NULL ? Py_NewRef(Py_None) : headers;
}

/* --- encoding ------------------------------------------------------------------------------ */

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

static PyObject *
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

static PyObject *
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

/* --- the module ---------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"encode_rows", encode_rows, METH_O, "Encode new records: section, base and max timestamp."},
    {"encode_kept", encode_kept, METH_VARARGS, "Encode records that already have offsets."},
    {"decode_rows", decode_rows, METH_VARARGS, "Decode all records of a section."},
    {"decode_arrays", decode_arrays, METH_VARARGS, "Decode a section into columns."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "broker.batch._speed",
    .m_doc = "Records of a batch, encoded and decoded in C.",
    .m_methods = methods,
};

PyMODINIT_FUNC
PyInit__speed(void)
{
    return PyModuleDef_Init(&definition);
}
