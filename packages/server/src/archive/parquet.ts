import { createHash } from 'node:crypto'
import { parquetReadObjects } from 'hyparquet'
import { parquetWriteBuffer } from 'hyparquet-writer'

/** A value of a row: times are microseconds since 1970, documents are their text, bytes are hexadecimal. */
export type Cell = string | number | bigint | boolean | null

export interface Column {
  readonly name: string
  readonly type: 'text' | 'hex' | 'integer' | 'bigint' | 'boolean' | 'time'
}

/** Cells in the order of the columns. */
export type Row = readonly Cell[]

const elements = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  hex: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT32' },
  bigint: { type: 'INT64' },
  boolean: { type: 'BOOLEAN' },
  time: { type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
} as const

/** Returns the rows as a Parquet file. */
export function writeParquet(columns: readonly Column[], rows: readonly Row[]): Uint8Array {
  const file = parquetWriteBuffer({
    columnData: columns.map(({ name }, at) => ({ name, data: rows.map((row) => row[at] ?? null) })),
    schema: [
      { name: 'root', num_children: columns.length },
      ...columns.map(({ name, type }) => ({ name, ...elements[type], repetition_type: 'OPTIONAL' as const })),
    ],
    createdBy: 'purser',
  })
  return new Uint8Array(file)
}

/** A byte order mark at the start of a text belongs to it. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true })

/** Returns the rows of a Parquet file. */
export async function readParquet(columns: readonly Column[], file: Uint8Array): Promise<Row[]> {
  const bytes = file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength) as ArrayBuffer
  const objects = await parquetReadObjects({
    file: bytes,
    parsers: {
      stringFromBytes: (text: Uint8Array | undefined) => text && decoder.decode(text),
      timestampFromMicroseconds: (micros: bigint) => micros,
    },
  })
  return objects.map((object) => columns.map(({ name }) => (object[name] ?? null) as Cell))
}

/** Returns an incremental SHA-256 over rows, with their count. */
export function startRowsHash() {
  const hash = createHash('sha256')
  let count = 0
  return {
    add(rows: readonly Row[]): void {
      for (const row of rows)
        hash.update(`${JSON.stringify(row.map((cell) => (typeof cell === 'bigint' ? String(cell) : cell)))}\n`)
      count += rows.length
    },
    /** May be called once. */
    end: () => ({ count, hash: new Uint8Array(hash.digest()) }),
  }
}
