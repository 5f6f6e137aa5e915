/** Descriptions of the arguments that a tool takes otherwise than its operation. */
export const argumentDescriptions: Readonly<Record<string, string | undefined>> = {
  limit: 'Items per page.',
  cursor: 'The nextCursor of the page before.',
}
