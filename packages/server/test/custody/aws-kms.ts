import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'

export const keyArn = 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'
const accessKeyId = 'AKIDEXAMPLE'
const secretAccessKey = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY'
const inside = randomBytes(32)

const Requested = z.strictObject({
  KeyId: z.literal(keyArn),
  EncryptionContext: z.strictObject({ purser: z.string() }),
  EncryptionAlgorithm: z.literal('SYMMETRIC_DEFAULT'),
  Plaintext: z.base64().optional(),
  CiphertextBlob: z.base64().optional(),
})

export interface AwsKms {
  readonly endpoint: string
  requested: { readonly action: string; readonly context: string; readonly signed: boolean }[]
  answerOtherKey: boolean
  /** Its answer to every request, or that it cuts every connection. */
  trouble: 'none' | 'cut' | { readonly status: number; readonly type: string }
  stop(): void
}

/** AWS KMS as in its API reference: verifies the request's signature and authenticates the encryption context. */
export async function startAwsKms(): Promise<AwsKms> {
  process.env.AWS_ACCESS_KEY_ID = accessKeyId
  process.env.AWS_SECRET_ACCESS_KEY = secretAccessKey
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request)
    if (kms.trouble === 'cut') return void request.socket.destroy()
    response.setHeader('content-type', 'application/x-amz-json-1.1')
    if (kms.trouble !== 'none') {
      response.statusCode = kms.trouble.status
      return void response.end(JSON.stringify({ __type: kms.trouble.type, message: `no, not with ${keyArn}` }))
    }
    const action = String(request.headers['x-amz-target']).replace('TrentService.', '')
    const signed = isSigned(request, body)
    const { EncryptionContext, Plaintext, CiphertextBlob } = Requested.parse(JSON.parse(body.toString()))
    kms.requested.push({ action, context: EncryptionContext.purser, signed })
    const given = { context: EncryptionContext.purser, Plaintext, CiphertextBlob, otherKey: kms.answerOtherKey }
    const answer = signed ? act(action, given) : undefined
    response.statusCode = answer === undefined ? 400 : 200
    response.end(
      JSON.stringify(answer ?? { __type: signed ? 'InvalidCiphertextException' : 'InvalidSignatureException' }),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const kms: AwsKms = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requested: [],
    answerOtherKey: false,
    trouble: 'none',
    stop: () => void server.close(),
  }
  return kms
}

interface Given {
  readonly context: string
  readonly Plaintext: string | undefined
  readonly CiphertextBlob: string | undefined
  readonly otherKey: boolean
}

function act(
  action: string,
  { context, Plaintext, CiphertextBlob, otherKey }: Given,
): Record<string, string> | undefined {
  const aad = Buffer.from(context)
  const KeyId = otherKey ? `${keyArn}0` : keyArn
  if (action === 'Encrypt') {
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', inside, iv).setAAD(aad)
    const text = Buffer.concat([iv, cipher.update(Plaintext ?? '', 'base64'), cipher.final(), cipher.getAuthTag()])
    return { CiphertextBlob: text.toString('base64'), KeyId }
  }
  const bytes = Buffer.from(CiphertextBlob ?? '', 'base64')
  const decipher = createDecipheriv('aes-256-gcm', inside, bytes.subarray(0, 12)).setAAD(aad)
  decipher.setAuthTag(bytes.subarray(-16))
  try {
    const plain = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
    return { Plaintext: plain.toString('base64'), KeyId }
  } catch {
    return undefined
  }
}

/**
 * Verifies Signature Version 4, computed from the request as it arrived (AWS IAM user guide, "Create a signed AWS API
 * request").
 */
function isSigned(request: IncomingMessage, body: Buffer): boolean {
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=(\w{64})$/
  const [, id, day = '', region = '', service = '', names = '', signature] =
    pattern.exec(String(request.headers.authorization)) ?? []
  if (id !== accessKeyId || region !== 'eu-central-1' || service !== 'kms') return false
  if (!['host', 'x-amz-date', 'x-amz-target'].every((name) => names.split(';').includes(name))) return false
  const hash = (text: string | Buffer) => createHash('sha256').update(text).digest('hex')
  const mac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const headers = names.split(';').map((name) => `${name}:${String(request.headers[name]).trim()}\n`)
  const canonical = [request.method, request.url, '', headers.join(''), names, hash(body)].join('\n')
  const scope = `${day}/${region}/${service}/aws4_request`
  const toSign = ['AWS4-HMAC-SHA256', request.headers['x-amz-date'], scope, hash(canonical)].join('\n')
  const key = ['aws4_request'].reduce(mac, mac(mac(mac(`AWS4${secretAccessKey}`, day), region), service))
  return mac(key, toSign).toString('hex') === signature
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
