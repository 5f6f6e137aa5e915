import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type Answer, parseAnswer } from '../world.ts'

/** A form as browsers send it, byte for byte. */
export interface FormPart {
  readonly field?: string
  /** The raw header value, percent-encoding included; undefined for a part without one. */
  readonly filename?: string | undefined
  readonly type?: string | undefined
  readonly headers?: readonly string[]
  readonly content: string | Uint8Array
}

export const boundary = '----purser-test-boundary'
export const formType = `multipart/form-data; boundary=${boundary}`

export function formOf(...parts: readonly FormPart[]): Uint8Array<ArrayBuffer> {
  const pieces = parts.flatMap(({ field = 'file', filename, type, headers = [], content }) => {
    const name = filename === undefined ? '' : `; filename="${filename}"`
    const lines = [`Content-Disposition: form-data; name="${field}"${name}`, ...headers]
    if (type !== undefined) lines.push(`Content-Type: ${type}`)
    return [`--${boundary}\r\n${lines.join('\r\n')}\r\n\r\n`, content, '\r\n']
  })
  return new Uint8Array(Buffer.concat([...pieces, `--${boundary}--\r\n`].map((piece) => Buffer.from(piece))))
}

export interface Upload {
  readonly key: string
  readonly vaultId: string
  readonly body: Uint8Array<ArrayBuffer>
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a form to a vault. */
export async function upload(base: string, { key, vaultId, body, headers }: Upload): Promise<Answer> {
  const response = await fetch(`${base}/vaults/${vaultId}/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': formType, ...headers },
    body,
  })
  return parseAnswer(response)
}

/** Begins an upload of this many bytes over a separate socket, sends the given ones and stops there. */
export async function hangingUpload(
  base: string,
  { key, vaultId, body, headers = {} }: Upload,
  sentBytes: number,
): Promise<Socket> {
  const { hostname, port } = new URL(base)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  const fields = {
    host: hostname,
    authorization: `Bearer ${key}`,
    'content-type': formType,
    'content-length': String(body.length),
    ...headers,
  }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST /vaults/${vaultId}/files HTTP/1.1\r\n${lines.join('')}\r\n`)
  await new Promise<void>((resolve, reject) =>
    socket.write(body.subarray(0, sentBytes), (error) => (error ? reject(error) : resolve())),
  )
  return socket
}
