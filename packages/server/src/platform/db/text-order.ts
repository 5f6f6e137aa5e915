import { z } from 'zod'
import { type Db, sql } from './db.ts'

const Sorting = z.object({ isAscii: z.boolean(), encoding: z.string() })

/**
 * Throws unless the database stores UTF-8 and sorts ids as ASCII does. Ids are lower-case letters and digits, which most languages sort so too; Danish sorts
 * `aa` behind `z`, and Czech `ch` behind `h`. Seals list the ids of a vault in the order of ASCII, and read them in the order of the database.
 */
export async function requireIdOrder(db: Db): Promise<void> {
  const { isAscii, encoding } = await db.one(
    Sorting,
    sql`
    with signs as (select * from unnest(string_to_array('0123456789abcdefghijklmnopqrstuvwxyz', null)) as sign),
      texts as (select one.sign || two.sign || three.sign as text from signs one, signs two, unnest(array['', '0', 'a', 'z']) as three (sign))
    select array(select text from texts order by text) = array(select text from texts order by text collate "C") as is_ascii,
      current_setting('server_encoding') as encoding`,
  )
  if (isAscii && encoding === 'UTF8') return
  const fault = isAscii ? `The database stores ${encoding} and not UTF-8.` : 'The database does not sort ids as ASCII.'
  throw new Error(
    `${fault} Create it with: createdb --template template0 --encoding UTF8 --locale-provider builtin --builtin-locale C.UTF-8 (before PostgreSQL 17: --locale C.UTF-8)`,
  )
}
