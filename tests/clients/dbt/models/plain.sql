{{ config(materialized='materialized_view') }}
select url, count(*) as visits from {{ source('public', 'clicks') }} where url <> './home' group by url
