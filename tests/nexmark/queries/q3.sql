-- Local item suggestion: who sells in three states what is of one category. Both sides are kept for ever, as the
-- benchmark has it, so both are read as changelogs.
CREATE MATERIALIZED VIEW q3 AS
  SELECT P.name, P.city, P.state, A.id
  FROM auctions_by_id AS A JOIN persons_by_id AS P ON A.seller = P.id
  WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA');
SELECT * FROM q3;
