/** Descriptions that replace those of the operation, for arguments that mean something else in a tool. */
export const argumentDescriptions: Readonly<Record<string, string | undefined>> = {
  limit: 'Items per page.',
  cursor: 'The nextCursor of the page before.',
}
