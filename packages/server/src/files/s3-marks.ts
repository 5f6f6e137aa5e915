import {
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import type { Random } from '../platform/random.ts'
import type { Marks } from '../platform/witness/witness.ts'
import type { S3Settings } from './port.ts'
import { clientOf, type TimeLimits } from './s3.ts'

/** A mark is one small object. What waits for it is a payment, so that an attempt without a response is soon repeated. */
const limits: TimeLimits = { connectionTimeout: 2_000, socketTimeout: 3_000, requestTimeout: 3_000 }

/**
 * Marks as objects under `witness/`. Each contains a random token, so that a request repeated after a lost response is recognized. A storage without
 * conditional writes (`If-None-Match`) overwrites; a second copy of the database is then detected only by the next comparison.
 */
export function s3Marks(settings: S3Settings, { random }: { readonly random: Random }): Marks & { close(): void } {
  const client = clientOf(settings, limits)
  const { bucket: Bucket } = settings
  const keyOf = (deployment: string, name: string): string => `witness/${deployment}/${name}`
  return {
    async list(deployment) {
      const names: string[] = []
      const Prefix = keyOf(deployment, '')
      for (let after: string | undefined, isMore = true; isMore; isMore = after !== undefined) {
        const requested = { Bucket, Prefix, ...(after === undefined ? {} : { ContinuationToken: after }) }
        const page = await client.send(new ListObjectsV2Command(requested))
        names.push(...(page.Contents ?? []).map(({ Key = '' }) => Key.slice(Prefix.length)))
        after = page.NextContinuationToken
      }
      return names
    },
    async create(deployment, name) {
      const at = { Bucket, Key: keyOf(deployment, name) }
      return createMark(client, at, Buffer.from(random.bytes(16)).toString('hex'))
    },
    async remove(deployment, names) {
      for (const name of names) await client.send(new DeleteObjectCommand({ Bucket, Key: keyOf(deployment, name) }))
    },
    close: () => client.destroy(),
  }
}

async function createMark(
  client: S3Client,
  at: { readonly Bucket: string; readonly Key: string },
  token: string,
): Promise<'created' | 'taken'> {
  try {
    await client.send(new PutObjectCommand({ ...at, Body: token, IfNoneMatch: '*' }))
    return 'created'
  } catch (error) {
    const status = error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined
    if (status === 501) {
      await client.send(new PutObjectCommand({ ...at, Body: token }))
      return 'created'
    }
    if (status !== 412) throw error
    const { Body } = await client.send(new GetObjectCommand(at))
    return (await Body?.transformToString()) === token ? 'created' : 'taken'
  }
}
