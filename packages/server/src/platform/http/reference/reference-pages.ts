import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { qualityOf } from '../accept.ts'
import type { RawResponse } from '../call.ts'
import type { PageRequest, PublicPage } from '../public-page.ts'

/** The directories of the built reference: beside the compiled service, or in the workspace that this source is in. */
const builtDirectories = ['../../../reference', '../../../../../reference/dist'].map((from) =>
  path.join(import.meta.dirname, from),
)

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
}

/**
 * Scripts come from files of this service, and requests go to it alone. Scalar writes its styles into the page. A key that a reader types is on
 * this page, so no other page may frame it, and no form sends it.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': contentSecurityPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

const withoutScripts: RawResponse = { status: 302, headers: { location: '/docs/reference/plain' }, body: '' }

/**
 * The reference with search and requests that a reader can send, at `/docs/reference`, and its files. The files are in memory once they were
 * requested, as the build compressed them. Without a build, the reference without scripts takes its place.
 */
export function referencePages(
  missing: () => RawResponse,
  directories: readonly string[] = builtDirectories,
): readonly PublicPage[] {
  const directory = (): string | undefined => directories.find((one) => existsSync(path.join(one, 'index.html')))
  const bytesOf = fileReader()
  const page = (): RawResponse => {
    const built = directory()
    if (built === undefined) return withoutScripts
    return { status: 200, headers: pageHeaders, body: readFileSync(path.join(built, 'index.html')) }
  }
  return [
    { path: '/docs/reference', respond: page },
    {
      path: '/docs/reference/assets/:file',
      respond: ({ file = '' }, request) => assetResponse(directory(), file, request, bytesOf) ?? missing(),
      isStatic: true,
    },
  ]
}

/** A name has no slash, so it leads nowhere else. */
const assetName = /^\w[\w-]*\.(?:css|js)$/

const encodings = ['br', 'gzip'] as const
type Encoding = (typeof encodings)[number]

function assetResponse(
  directory: string | undefined,
  name: string,
  { headers }: PageRequest,
  bytesOf: ReturnType<typeof fileReader>,
): RawResponse | undefined {
  if (directory === undefined || !assetName.test(name)) return undefined
  const file = path.join(directory, 'assets', name)
  if (!existsSync(`${file}.gz`) || !existsSync(`${file}.br`)) return undefined
  const accepted = headers['accept-encoding'] ?? ''
  const encoding = encodings.find((one) => qualityOf(accepted, one) > 0)
  return {
    status: 200,
    headers: {
      'content-type': contentTypes[path.extname(name)] ?? 'application/octet-stream',
      // The name has the digest of the content.
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...(encoding !== undefined && { 'content-encoding': encoding }),
    },
    body: bytesOf(file, encoding),
  }
}

/** Returns a reader of files in each encoding. Responses share a file, so that one that nobody reads takes no memory. */
function fileReader(): (file: string, encoding: Encoding | undefined) => Uint8Array {
  const kept = new Map<string, Uint8Array>()
  const read = (file: string, encoding: Encoding | undefined): Uint8Array => {
    const name = `${file} ${encoding}`
    // A client that takes no encoding, as few do, gets the unpacked file: the build writes none.
    const bytes =
      kept.get(name) ??
      (encoding === undefined
        ? gunzipSync(read(file, 'gzip'))
        : readFileSync(`${file}.${encoding === 'br' ? 'br' : 'gz'}`))
    kept.set(name, bytes)
    return bytes
  }
  return read
}
