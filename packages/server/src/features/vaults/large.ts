import { sealedItemsOf } from '@purser/protocol'
import type { Queryable } from '../../platform/db/db.ts'
import { itemsOf, JsonStream, openObject } from '../../platform/json-stream.ts'
import type { DocumentRow, FileRow } from './document-store.ts'
import { shownDocument } from './documents.ts'
import { fail } from './errors.ts'
import { getSealedHead, listDocumentsAfter, listFilesAfter, rowsMax } from './large-store.ts'
import type { Ctx } from './ports.ts'
import { Vault, VaultDocument, VaultFile, type VaultFile as VaultFileShown } from './schema.ts'
import { findVault, type VaultRow } from './store.ts'
import { shownVault } from './vault.ts'

/** A vault with more documents and files than this is read and sent a few hundred at a time. */
const itemsAtOnceMax = 1_000
/** Approximate bytes of an item in a vault's record, where it occurs twice, and in its manifest. */
const stateBytesPerItem = 600
const manifestBytesPerItem = 250

interface Reading extends Pick<Ctx, 'clock' | 'tenant'> {
  readonly db: Queryable
}

/** Whether a vault has too many items to be read at once. */
export function isLarge(vault: Pick<VaultRow, 'documentCount' | 'fileCount'>): boolean {
  return itemCountOf(vault) > itemsAtOnceMax
}

function itemCountOf({ documentCount, fileCount }: Pick<VaultRow, 'documentCount' | 'fileCount'>): number {
  return documentCount + fileCount
}

export interface LargeState {
  /** Reads the manifest without its items. Called when the response is charged, because it parses a whole sealed manifest. */
  readonly readHead: () => Promise<object>
  readonly shownFile: (file: FileRow) => VaultFileShown
  readonly dataBytesMax: number
}

/** Returns the record of a large vault, as `getVault` does for others. */
export function largeState(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, vault: VaultRow, state: LargeState): JsonStream {
  return new JsonStream(piecesOfState(ctx, vault, state), itemCountOf(vault) * stateBytesPerItem)
}

/**
 * Returns the proof of a large sealed vault. Its items are those of the vault, which do not change after the seal. `signed` returns the last members
 * of the proof for the stored statement.
 */
export function largeProof(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  vault: VaultRow,
  signed: (statement: string) => Promise<object>,
): JsonStream {
  async function* pieces() {
    const { head, statement } = await getSealedHead(ctx.db, ctx.tenant, vault.id)
    yield '{"manifest":'
    yield* piecesOfManifest(ctx, vault, head)
    yield `,${JSON.stringify(await signed(statement)).slice(1)}`
  }
  return new JsonStream(pieces(), itemCountOf(vault) * manifestBytesPerItem)
}

async function* piecesOfState(
  ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>,
  vault: VaultRow,
  { readHead, shownFile, dataBytesMax }: LargeState,
) {
  const head = await readHead()
  const documents = documentsOf(ctx, vault, dataBytesMax)
  yield `${openObject(Vault.parse(shownVault(ctx.tenant, vault)))},"documents":[`
  yield* itemsOf(mapped(documents, (document) => VaultDocument.parse(shownDocument(document))))
  yield '],"files":['
  yield* itemsOf(mapped(filesOf(ctx, vault), (file) => VaultFile.parse(shownFile(file))))
  yield `],"eventCount":${vault.eventCount},"manifest":`
  yield* piecesOfManifest(ctx, vault, head)
  yield '}'
}

/** The ids of documents sort before those of files, so that this is the order of the manifest. */
async function* piecesOfManifest(ctx: Pick<Ctx, 'clock' | 'db' | 'tenant'>, vault: VaultRow, head: object) {
  yield `${openObject(head)},"items":[`
  yield* itemsOf(itemPages(ctx, vault))
  yield ']}'
}

/** Yields the items of a vault in the order of its manifest. */
export async function* itemPages(ctx: Reading, vault: VaultRow) {
  for await (const page of documentsOf(ctx, vault, 0))
    yield sealedItemsOf(page.map((document) => ({ kind: 'document', ...document })))
  for await (const page of filesOf(ctx, vault)) yield sealedItemsOf(page.map((file) => ({ kind: 'file', ...file })))
}

/** Throws if the vault is gone: what was read of it since may not be all that it had. */
async function requireThere(ctx: Reading, id: VaultRow['id']): Promise<void> {
  if ((await findVault(ctx.db, ctx.tenant, id, ctx.clock.now())) === undefined) throw fail('vault-not-found')
}

function documentsOf(ctx: Reading, { id }: VaultRow, dataBytesMax: number): AsyncGenerator<readonly DocumentRow[]> {
  let bytesLeft = dataBytesMax
  return pagesOf(async (after) => {
    const page = await listDocumentsAfter(ctx.db, ctx.tenant, id, { after, dataBytesMax: bytesLeft })
    await requireThere(ctx, id)
    bytesLeft = Math.max(0, bytesLeft - page.reduce((sum, { size }) => sum + size, 0))
    return page
  })
}

function filesOf(ctx: Reading, { id }: VaultRow): AsyncGenerator<readonly FileRow[]> {
  return pagesOf(async (after) => {
    const page = await listFilesAfter(ctx.db, ctx.tenant, id, after)
    await requireThere(ctx, id)
    return page
  })
}

async function* pagesOf<R extends { readonly id: string }>(
  read: (after: string) => Promise<readonly R[]>,
): AsyncGenerator<readonly R[]> {
  let after = ''
  for (;;) {
    const page = await read(after)
    yield page
    const last = page.at(-1)
    if (last === undefined || page.length < rowsMax) return
    after = last.id
  }
}

async function* mapped<T, S>(pages: AsyncIterable<readonly T[]>, shown: (item: T) => S) {
  for await (const page of pages) yield page.map(shown)
}
