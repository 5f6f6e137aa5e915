import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { qualityOf } from './accept.ts'
import type { RawResponse } from './call.ts'
import type { PageRequest, PublicPage } from './server.ts'

/** The directories of the built dashboard: beside the compiled service, or in the workspace that this source is in. */
const builtDirectories = ['../../dashboard', '../../../../dashboard/dist'].map((from) =>
  path.join(import.meta.dirname, from),
)

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}

/** Encodings that the build writes beside a file, best first, by their ending. */
const encodings = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

/** No other origin may load, receive or frame anything. Files of vaults are shown in sandboxed frames and images that the page itself creates. */
const contentSecurityPolicy = [
  "default-src 'self'",
  "img-src 'self' data: blob:",
  "frame-src 'self' blob:",
  "media-src 'self' blob:",
  "connect-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const documentHeaders = {
  'content-security-policy': contentSecurityPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  // With no-referrer a browser sends `Origin: null`, and the service would refuse every write.
  'referrer-policy': 'same-origin',
  'cache-control': 'no-cache',
  vary: 'accept-encoding',
}

interface BuiltFile {
  readonly bytes: Uint8Array
  readonly encoded: Readonly<Partial<Record<'br' | 'gzip', Uint8Array>>>
}

interface Build {
  readonly builtAt: number
  readonly files: ReadonlyMap<string, BuiltFile>
}

/**
 * The dashboard under `/dashboard`: the built files, and `index.html` for every address that the dashboard routes by itself. A file is found by its
 * name among those that were read, so that no path leads anywhere else. Without a build the pages explain how to build it.
 */
export function dashboardPages(directories: readonly string[] = builtDirectories): PublicPage[] {
  const read = buildReader(directories)
  const respond: PublicPage['respond'] = (params, request) => responseFrom(read(), params['*'] ?? '', request)
  return ['/dashboard', '/dashboard/*'].map((path) => ({ path, respond, isStatic: true }))
}

function responseFrom(build: Build | undefined, name: string, request: PageRequest): RawResponse {
  if (build === undefined) return notBuilt
  const found = build.files.get(name)
  if (found !== undefined && name !== 'index.html') return fileResponse(name, found, request)
  if (name.startsWith('assets/')) return text(404, 'There is no such file in this build of the dashboard.')
  const index = build.files.get('index.html')
  return index === undefined ? notBuilt : fileResponse('index.html', index, request)
}

function fileResponse(name: string, file: BuiltFile, { headers }: PageRequest): RawResponse {
  const accepted = headers['accept-encoding'] ?? ''
  const encoding = encodings
    .map(([one]) => one)
    .find((one) => file.encoded[one] !== undefined && qualityOf(accepted, one) > 0)
  const own = name.startsWith('assets/')
    ? { 'cache-control': 'public, max-age=31536000, immutable', vary: 'accept-encoding' }
    : documentHeaders
  return {
    status: 200,
    headers: {
      ...own,
      'content-type': contentTypes[path.extname(name)] ?? 'application/octet-stream',
      ...(encoding !== undefined && { 'content-encoding': encoding }),
    },
    body: (encoding === undefined ? undefined : file.encoded[encoding]) ?? file.bytes,
  }
}

const notBuilt: RawResponse = text(
  503,
  'The dashboard is not built yet.\n\nBuild it once with:\n\n  npm run build:dashboard\n\nthen load this page again. The API itself works without it.',
)

function text(status: number, body: string): RawResponse {
  return {
    status,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    },
    body: `${body}\n`,
  }
}

/** Reads the build when it is first wanted, and again when another one has taken its place. */
function buildReader(directories: readonly string[]): () => Build | undefined {
  let build: Build | undefined
  return () => {
    const directory = directories.find((one) => existsSync(path.join(one, 'index.html')))
    if (directory === undefined) return undefined
    const builtAt = statSync(path.join(directory, 'index.html')).mtimeMs
    if (build?.builtAt !== builtAt) build = { builtAt, files: readBuild(directory) }
    return build
  }
}

function readBuild(directory: string): ReadonlyMap<string, BuiltFile> {
  const names = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
  const existing = new Set(names)
  const read = (name: string): Uint8Array => readFileSync(path.join(directory, name))
  const plain = names.filter((name) => !encodings.some(([, ending]) => name.endsWith(ending)))
  return new Map(
    plain.map((name) => {
      const encoded = encodings
        .filter(([, ending]) => existing.has(name + ending))
        .map(([encoding, ending]) => [encoding, read(name + ending)])
      return [name, { bytes: read(name), encoded: Object.fromEntries(encoded) }]
    }),
  )
}
