import pg from 'pg'
import { startPostgres } from '../src/index.ts'

// A launcher to be killed: starts a database, writes rows as fast as it can, prints the number of each acknowledged row.
const [dataDir = ''] = process.argv.slice(2)
const server = await startPostgres({ dataDir })
const client = new pg.Client({ connectionString: server.url })
await client.connect()
await client.query('create table if not exists acknowledged (number bigint primary key)')
console.log(`cluster ${server.cluster}`)
for (let number = 0; number < 1_000_000; number += 1) {
  await client.query('insert into acknowledged values ($1)', [number])
  process.stdout.write(`row ${number}\n`)
}
