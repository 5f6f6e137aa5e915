import pg from 'pg'

const probeMsMax = 1_500

/**
 * Queries a server over a connection of its own which of these server processes work on a statement. Returns their numbers; `works` if the
 * server answers but does not say (it has no connection left, or a pooler is in front); `silent` if it does not respond in 1.5 s.
 */
export async function probe(url: string, pids: readonly number[]): Promise<ReadonlySet<number> | 'works' | 'silent'> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: probeMsMax,
    application_name: 'purser',
  })
  client.on('error', () => undefined)
  const patience = setTimeout(() => client.connection.stream.destroy(new Error('silent')), probeMsMax)
  try {
    await client.connect()
    if (pids.length === 0) return 'works'
    const { rows } = await client.query<{ pid: number }>(
      `select pid from pg_stat_activity where pid = any($1::integer[]) and (state is null or state not like 'idle%')`,
      [[...pids]],
    )
    return new Set(rows.map(({ pid }) => pid))
  } catch (error) {
    return error instanceof pg.DatabaseError ? 'works' : 'silent'
  } finally {
    clearTimeout(patience)
    client.connection.stream.destroy()
  }
}
