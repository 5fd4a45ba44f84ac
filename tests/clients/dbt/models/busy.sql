select url, visits from {{ ref('by_url') }} where visits > 0
