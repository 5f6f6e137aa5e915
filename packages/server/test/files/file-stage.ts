import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { deleteUnreferencedFiles } from '../../src/features/vaults/index.ts'
import { sql } from '../../src/platform/db/db.ts'
import { systemCtx } from '../../src/platform/work/runner.ts'
import { aVaultStage, type VaultStage } from '../stories/vaults-stage.ts'
import type { Answer, Org } from '../world.ts'
import { type FormPart, formOf, upload } from './uploads.ts'

type Headers = Record<string, string>
type Body = Uint8Array<ArrayBuffer>

/** A vault of a new organisation, and functions to fill it. */
export interface FilledVault {
  readonly org: Org
  readonly vaultId: string
  send(part?: Partial<FormPart>, headers?: Headers): Promise<Answer>
  sendRaw(body: Body, headers?: Headers): Promise<Answer>
  state(): Promise<Answer['body']>
}

/** A stage with vaults to fill, and access to the store with their files. */
export interface FileStage extends VaultStage {
  aVault(plan?: 'hobby' | 'pro' | 'enterprise'): Promise<FilledVault>
  sendTo(org: Org, vaultId: string, body: Body, headers?: Headers): Promise<Answer>
  download(org: Org, vaultId: string, fileId: unknown, headers?: Headers): Promise<Response>
  sweep(): Promise<void>
  /** The number of blobs in the store, of uploads in progress, and of blobs queued for deletion. */
  store(): Promise<Readonly<Record<'blobs' | 'uploads' | 'deletions', number>>>
}

/** Content for tests where it does not matter. */
export const content = randomBytes(100_000)
export const sha256 = createHash('sha256').update(content).digest('hex')
export const mebibyte = 2 ** 20

export async function aFileStage(): Promise<FileStage> {
  const stage = await aVaultStage()
  const { base, server } = stage.world
  const sendTo: FileStage['sendTo'] = (org, vaultId, body, headers = {}) =>
    upload(base, { key: org.testKey, vaultId, body, headers })
  return {
    ...stage,
    sendTo,
    async aVault(plan = 'enterprise') {
      const org = await stage.world.organisation(plan)
      const vaultId = await stage.vault(org)
      return {
        org,
        vaultId,
        send: (part = {}, headers = {}) =>
          sendTo(org, vaultId, formOf({ filename: 'report.bin', content, ...part }), headers),
        sendRaw: (body, headers = {}) => sendTo(org, vaultId, body, headers),
        state: async () => (await stage.call(org, 'GET', `/vaults/${vaultId}`)).body,
      }
    },
    download: (org, vaultId, fileId, headers = {}) =>
      fetch(`${base}/vaults/${vaultId}/files/${fileId}`, {
        headers: { authorization: `Bearer ${org.testKey}`, ...headers },
      }),
    sweep: () => deleteUnreferencedFiles.run(systemCtx(server.deps)),
    store: () => storeOf(stage),
  }
}

const Counts = z.object({ uploads: z.bigint().transform(Number), deletions: z.bigint().transform(Number) })

async function storeOf({ world }: VaultStage) {
  const { db, blobs } = world.server.deps
  let stored = 0
  for await (const keys of blobs.list(new Date('9999-01-01'))) stored += keys.length
  const counts = await db.one(
    Counts,
    sql`select (select count(*) from vault_uploads) as uploads, (select count(*) from blob_deletions) as deletions`,
  )
  return { blobs: stored, ...counts }
}

export async function bytesOf(response: Response): Promise<Buffer> {
  return Buffer.from(await response.arrayBuffer())
}
