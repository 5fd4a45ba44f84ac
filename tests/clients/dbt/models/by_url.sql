{{ config(materialized='materialized_view', indexes=[{'columns': ['url'], 'unique': true}]) }}
select url, count(*) as visits from {{ source('public', 'clicks') }} group by url
