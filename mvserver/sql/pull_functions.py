"""The functions that a pull query may call: PostgreSQL's, with its meaning, and those of its catalogs.

DuckDB has hundreds of others, and some of these names with more forms. So a name that does not stand here does not
exist, and a number of arguments that PostgreSQL does not have is refused too. ``docs/generate.py`` makes the page of
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

MANY = 1_000_000


@dataclass(frozen=True)
class Called:
    """How a function may be called."""

    name: str
    least: int
    most: int
    kind: str = "scalar"  # aggregate, ordered (an aggregate that needs WITHIN GROUP), window (needs OVER), rows

    def takes(self, arguments: int) -> bool:
        return self.least <= arguments <= self.most


GROUPS: dict[str, str] = {
    "Numbers": """
        abs 1, acos 1, acosh 1, asin 1, asinh 1, atan 1, atan2 2, atanh 1, cbrt 1, ceil 1, ceiling 1, cos 1, cosh 1,
        cot 1, degrees 1, div 2, exp 1, floor 1, gcd 2, greatest 1+, lcm 2, least 1+, ln 1, log 1-2, log10 1, mod 2,
        num_nonnulls 1+, num_nulls 1+, pi 0, pow 2, power 2, radians 1, random 0, round 1-2, sign 1, sin 1, sinh 1,
        sqrt 1, tan 1, tanh 1, trunc 1-2, width_bucket 4""",
    "Text and bytes": """
        ascii 1, bit_length 1, btrim 1-2, char_length 1, character_length 1, chr 1, concat 1+, concat_ws 2+,
        convert_from 2, convert_to 2, decode 2, encode 2, format 1+, get_byte 2, initcap 1, left 2, length 1, lower 1,
        lpad 2-3, ltrim 1-2, md5 1, octet_length 1, overlay 3-4, parse_ident 1, position 2, quote_ident 1,
        quote_literal 1, quote_nullable 1, regexp_count 2, regexp_like 2-3, regexp_match 2, regexp_replace 3-4,
        regexp_split_to_array 2, repeat 2, replace 3, reverse 1, right 2, rpad 2-3, rtrim 1-2, sha256 1, split_part 3,
        starts_with 2, string_to_array 2-3, strpos 2, substr 2-3, substring 2-3, to_char 2, to_hex 1, translate 3,
        trim 1-3, upper 1""",
    "Dates and times": """
        age 1-2, clock_timestamp 0, current_date 0, current_time 0-1, current_timestamp 0-1, date 1, date_bin 3,
        date_part 2, date_trunc 2-3, extract 2, isfinite 1, justify_days 1, justify_hours 1, localtime 0-1,
        localtimestamp 0-1, make_date 3, make_time 3, make_timestamp 6, make_timestamptz 6-7, now 0,
        statement_timestamp 0, timeofday 0, timezone 2, to_date 2, to_timestamp 1-2, transaction_timestamp 0""",
    "Arrays and enums": """
        array_append 2, array_cat 2, array_dims 1, array_length 2, array_lower 2, array_ndims 1, array_position 2,
        array_prepend 2, array_remove 2, array_replace 3, array_to_string 2-3, array_upper 2, cardinality 1,
        enum_first 1, enum_last 1, enum_range 1-2""",
    "JSON": """
        array_to_json 1, json_array_length 1, json_build_array 0+, json_build_object 0+, json_extract_path 2+,
        json_extract_path_text 2+, json_strip_nulls 1, json_typeof 1, jsonb_array_length 1, jsonb_build_array 0+,
        jsonb_build_object 0+, jsonb_extract_path 2+, jsonb_extract_path_text 2+, jsonb_set 3-4, jsonb_typeof 1,
        row_to_json 1, to_json 1, to_jsonb 1""",
    "Aggregates": """
        any_value 1 aggregate, array_agg 1 aggregate, avg 1 aggregate, bit_and 1 aggregate, bit_or 1 aggregate,
        bit_xor 1 aggregate, bool_and 1 aggregate, bool_or 1 aggregate, corr 2 aggregate, count 1 aggregate,
        covar_pop 2 aggregate, covar_samp 2 aggregate, every 1 aggregate, json_agg 1 aggregate,
        json_object_agg 2 aggregate, jsonb_agg 1 aggregate, jsonb_object_agg 2 aggregate, max 1 aggregate,
        min 1 aggregate, mode 0 ordered, percentile_cont 1 ordered, percentile_disc 1 ordered, regr_avgx 2 aggregate,
        regr_avgy 2 aggregate, regr_count 2 aggregate, regr_intercept 2 aggregate, regr_r2 2 aggregate,
        regr_slope 2 aggregate, regr_sxx 2 aggregate, regr_sxy 2 aggregate, regr_syy 2 aggregate, stddev 1 aggregate,
        stddev_pop 1 aggregate, stddev_samp 1 aggregate, string_agg 2 aggregate, sum 1 aggregate, var_pop 1 aggregate,
        var_samp 1 aggregate, variance 1 aggregate, grouping 1+""",
    "Windows": """
        cume_dist 0 window, dense_rank 0 window, first_value 1 window, lag 1-3 window, last_value 1 window,
        lead 1-3 window, nth_value 2 window, ntile 1 window, percent_rank 0 window, rank 0 window,
        row_number 0 window""",
    "Rows": """
        aclexplode 1 rows, generate_series 2-3 rows, generate_subscripts 2 rows, json_array_elements 1 rows,
        json_array_elements_text 1 rows, json_each 1 rows, json_each_text 1 rows, json_object_keys 1 rows,
        jsonb_array_elements 1 rows, jsonb_array_elements_text 1 rows, jsonb_each 1 rows, jsonb_each_text 1 rows,
        jsonb_object_keys 1 rows, pg_get_keywords 0 rows, pg_listening_channels 0 rows, pg_options_to_table 1 rows,
        pg_partition_ancestors 1 rows, pg_partition_tree 1 rows, pg_timezone_names 0 rows,
        regexp_split_to_table 2 rows, string_to_table 2 rows, ts_token_type 1 rows, unnest 1+ rows,
        _pg_expandarray 1 rows""",
    "Session and server": """
        current_catalog 0, current_database 0, current_query 0, current_role 0, current_schema 0, current_schemas 1,
        current_setting 1-2, current_user 0, gen_random_uuid 0, inet_client_addr 0, inet_client_port 0,
        inet_server_addr 0, inet_server_port 0, pg_advisory_unlock_all 0, pg_backend_pid 0, pg_cancel_backend 1,
        pg_client_encoding 0, pg_conf_load_time 0, pg_current_xact_id_if_assigned 0, pg_is_in_recovery 0,
        pg_is_wal_replay_paused 0, pg_my_temp_schema 0, pg_postmaster_start_time 0, pg_sleep 1,
        pg_terminate_backend 1-2, row_security_active 1, session_user 0, set_config 3, txid_current 0,
        txid_current_if_assigned 0, user 0, uuid_generate_v4 0, version 0""",
    "Catalog": """
        acldefault 2, col_description 2, format_type 2, getdatabaseencoding 0, has_any_column_privilege 2-3,
        has_column_privilege 3-4, has_database_privilege 2-3, has_foreign_data_wrapper_privilege 2-3,
        has_function_privilege 2-3, has_language_privilege 2-3, has_schema_privilege 2-3, has_sequence_privilege 2-3,
        has_server_privilege 2-3, has_table_privilege 2-3, has_tablespace_privilege 2-3, has_type_privilege 2-3,
        obj_description 1-2, pg_char_to_encoding 1, pg_collation_is_visible 1, pg_column_is_updatable 3,
        pg_conversion_is_visible 1, pg_database_size 1, pg_encoding_to_char 1, pg_function_is_visible 1,
        pg_get_constraintdef 1-2, pg_get_expr 2-3, pg_get_function_arguments 1, pg_get_function_identity_arguments 1,
        pg_get_function_result 1, pg_get_function_sqlbody 1, pg_get_functiondef 1, pg_get_indexdef 1-3,
        pg_get_partition_constraintdef 1, pg_get_partkeydef 1, pg_get_ruledef 1-2, pg_get_serial_sequence 2,
        pg_get_statisticsobjdef 1, pg_get_statisticsobjdef_columns 1, pg_get_triggerdef 1-2, pg_get_userbyid 1,
        pg_get_viewdef 1-2, pg_has_role 2-3, pg_index_column_has_property 3, pg_indexam_has_property 2,
        pg_indexes_size 1, pg_is_other_temp_schema 1, pg_opclass_is_visible 1, pg_operator_is_visible 1,
        pg_opfamily_is_visible 1, pg_relation_filenode 1, pg_relation_is_publishable 1, pg_relation_is_updatable 2,
        pg_relation_size 1-2, pg_sequence_last_value 1, pg_size_pretty 1, pg_stat_get_numscans 1,
        pg_statistics_obj_is_visible 1, pg_table_is_visible 1, pg_table_size 1, pg_tablespace_location 1,
        pg_tablespace_size 1, pg_total_relation_size 1, pg_ts_config_is_visible 1, pg_ts_dict_is_visible 1,
        pg_ts_parser_is_visible 1, pg_ts_template_is_visible 1, pg_type_is_visible 1, pg_typeof 1, shobj_description 2,
        to_regclass 1, to_regnamespace 1, to_regproc 1, to_regrole 1, to_regtype 1""",
}
"""By kind: names, how many arguments they take, and what they are where they are no plain functions."""

OTHER_FORMS = """
    array_position 3, array_to_json 2, cume_dist 1+, dense_rank 1+, generate_series 4, generate_subscripts 3,
    json_strip_nulls 2, length 2, parse_ident 2, percent_rank 1+, random 2, rank 1+, regexp_count 3-4, regexp_match 3,
    regexp_replace 5-6, regexp_split_to_array 3, regexp_split_to_table 3, row_to_json 2, string_to_table 3, timezone 1,
    width_bucket 2"""
"""Further numbers of arguments that PostgreSQL has, and pull queries have not."""


@cache
def table() -> dict[str, Called]:
    return {called.name: called for text in GROUPS.values() for called in _read(text)}


@cache
def other_forms() -> dict[str, Called]:
    return {called.name: called for called in _read(OTHER_FORMS)}


def _read(text: str) -> Iterator[Called]:
    for entry in " ".join(text.split()).split(", "):
        name, arguments, *kind = entry.split(" ")
        least, _, most = arguments.partition("-")
        if arguments.endswith("+"):
            least, most = arguments[:-1], str(MANY)
        yield Called(name, int(least), int(most or least), *kind)
