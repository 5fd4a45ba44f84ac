select url from {{ ref('busy') }} order by visits desc limit 1
