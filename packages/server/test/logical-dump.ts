import pg from 'pg'

/** What `pg_dump` takes of a database in use: every row at one moment, and the sequences' values. */
export interface LogicalDump {
  readonly tables: ReadonlyMap<string, string>
  readonly sequences: readonly { readonly name: string; readonly value: string }[]
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

export function takeDump(url: string): Promise<LogicalDump> {
  return withClient(url, async (client) => {
    await client.query('begin isolation level repeatable read read only')
    const { rows } = await client.query<{ name: string }>(
      `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
    )
    const tables = new Map<string, string>()
    for (const { name } of rows) {
      const taken = await client.query<{ rows: string }>(
        `select coalesce(json_agg(t), '[]')::text as rows from "${name}" t`,
      )
      tables.set(name, taken.rows[0]?.rows ?? '[]')
    }
    const sequences = await client.query<{ name: string; value: string }>(
      `select sequencename as name, last_value::text as value from pg_sequences where schemaname = 'public' and last_value is not null`,
    )
    await client.query('commit')
    return { tables, sequences: sequences.rows }
  })
}

/** Replaces all data with a dump. Requires that no client depends on the old data. */
export function loadDump(url: string, { tables, sequences }: LogicalDump): Promise<void> {
  return withClient(url, async (client) => {
    await client.query(`begin; set local session_replication_role = replica`)
    const names = [...tables.keys()].map((name) => `"${name}"`)
    await client.query(`truncate ${names.join(', ')}`)
    for (const [name, rows] of tables)
      await client.query(
        `insert into "${name}" overriding system value select * from json_populate_recordset(null::"${name}", $1::json)`,
        [rows],
      )
    for (const { name, value } of sequences) await client.query(`select setval('"${name}"', $1)`, [value])
    await client.query('commit')
  })
}
