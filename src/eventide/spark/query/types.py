"""Types of eventide as types of Spark, and back."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark

from eventide.common.typeinfo import TypeInformation, Types
from eventide.errors import ProgramError
from eventide.plan.job import SinkSpec

_SIMPLE: list[tuple[type[spark.DataType], TypeInformation]] = [
    (spark.StringType, Types.STRING()),
    (spark.BooleanType, Types.BOOLEAN()),
    (spark.ByteType, Types.BYTE()),
    (spark.ShortType, Types.SHORT()),
    (spark.IntegerType, Types.INT()),
    (spark.LongType, Types.LONG()),
    (spark.FloatType, Types.FLOAT()),
    (spark.DoubleType, Types.DOUBLE()),
    (spark.DateType, Types.SQL_DATE()),
    (spark.TimestampType, Types.SQL_TIMESTAMP()),
    (spark.TimestampNTZType, Types.SQL_TIMESTAMP()),
    (spark.BinaryType, Types.PRIMITIVE_ARRAY(Types.BYTE())),
]


def type_info_of(data_type: spark.DataType, path: str = "data frame") -> TypeInformation:
    """The eventide type of a Spark type; a struct is a ``Row`` with names.

    Raises:
        ProgramError: for a type that elements cannot have, naming the column.
    """
    for spark_type, type_info in _SIMPLE:
        if type(data_type) is spark_type:
            return type_info
    if isinstance(data_type, spark.DecimalType):
        return Types.BIG_DEC(data_type.precision, data_type.scale)
    if isinstance(data_type, spark.StructType):
        types = [type_info_of(field.dataType, f"{path}.{field.name}") for field in data_type.fields]
        return Types.ROW_NAMED(data_type.names, types)
    if isinstance(data_type, spark.ArrayType):
        return Types.LIST(type_info_of(data_type.elementType, f"{path}[]"))
    if isinstance(data_type, spark.MapType):
        return Types.MAP(type_info_of(data_type.keyType, f"{path}.key"), type_info_of(data_type.valueType, f"{path}[]"))
    raise ProgramError(
        f"the column {path} is of Spark's type {data_type.simpleString()}, which elements of eventide cannot have; "
        "cast or drop it before from_data_frame"
    )


def spark_type_of(arrow_type: pa.DataType) -> spark.DataType:
    """The Spark type of an Arrow type that a :class:`TypeInformation` gives."""
    if pa.types.is_struct(arrow_type):
        return spark.StructType([spark.StructField(f.name, spark_type_of(f.type)) for f in arrow_type])
    if pa.types.is_list(arrow_type):
        return spark.ArrayType(spark_type_of(arrow_type.value_type))
    if pa.types.is_map(arrow_type):
        return spark.MapType(spark_type_of(arrow_type.key_type), spark_type_of(arrow_type.item_type))
    if pa.types.is_decimal(arrow_type):
        return spark.DecimalType(arrow_type.precision, arrow_type.scale)
    if pa.types.is_timestamp(arrow_type):
        return spark.TimestampType()
    for spark_type, type_info in _SIMPLE:
        if type_info.arrow_type() == arrow_type:
            return spark_type()
    raise ProgramError(f"Spark has no type for {arrow_type}; declare another output_type")


def schema_of(sink: SinkSpec) -> spark.StructType:
    """The columns of a sink as a DataFrame: the fields of a tuple or row, or one column ``value``.

    Raises:
        ProgramError: if the type is not declared.
    """
    sink.check_columns()
    data_type = spark_type_of(sink.type_info.arrow_type())
    if isinstance(data_type, spark.StructType):
        return data_type
    return spark.StructType([spark.StructField("value", data_type)])
