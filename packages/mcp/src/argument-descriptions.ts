/** Descriptions of the arguments that a tool takes otherwise than its operation. */
export const argumentDescriptions: Readonly<Record<string, string | undefined>> = {
  limit: 'Most items of one answer.',
  cursor: 'The nextCursor of the page before.',
}
