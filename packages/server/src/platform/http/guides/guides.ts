import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** A page of the guides: its address is `/docs/<name>`. */
export interface Guide {
  readonly name: string
  readonly title: string
  /** The first sentence. */
  readonly summary: string
  readonly markdown: string
}

/** Guides in the order in which a reader meets them, in groups. Decisions are reached through the links of these. */
export const groups: readonly (readonly [title: string, names: readonly string[]])[] = [
  ['Start', ['README', 'comparison', 'sdk', 'python', 'cli', 'mcp-server', 'testing']],
  ['Tutorials', ['quick-start', 'agent-wallet', 'receive-deposits', 'moving', 'production']],
  ['Get paid', ['protocols', 'x402', 'mpp', 'facilitator', 'refunds', 'sessions', 'registry', 'webhooks', 'events']],
  [
    'Hold and move money',
    ['wallets', 'paying', 'agents', 'transfers', 'policies', 'withdrawals', 'partners', 'screening'],
  ],
  ['Deliver', ['vaults']],
  ['Organisation', ['organisations-and-keys', 'signing-in', 'lists', 'idempotency', 'errors', 'versioning']],
  [
    'Operate',
    [
      'operations',
      'runbooks',
      'migrations',
      'SECURITY',
      'performance',
      'architecture',
      'GLOSSARY',
      'CONTRIBUTING',
      'CHANGELOG',
    ],
  ],
]

/** The roots of the Markdown: beside the compiled service, or the repository that this source is in. */
const roots = ['../../../guides', '../../../../../..'].map((from) => path.join(import.meta.dirname, from))

/** Pages of the repository that are guides although they are not in `docs/`. */
export const rootPages = ['README', 'CONTRIBUTING', 'CHANGELOG', 'SECURITY']

/** Every guide and decision by name. The files are read once, when the first page is requested. */
export function readGuides(): ReadonlyMap<string, Guide> {
  const root = roots.find((one) => existsSync(path.join(one, 'docs'))) ?? roots[0] ?? ''
  const inDocs = readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => [nameOf(file), path.join(root, 'docs', file)] as const)
  const others = rootPages.map((name) => [name, path.join(root, `${name}.md`)] as const)
  return new Map([...inDocs, ...others].map(([name, file]) => [name, guideOf(name, readFileSync(file, 'utf8'))]))
}

function nameOf(file: string): string {
  return file.split(path.sep).join('/').slice(0, -'.md'.length)
}

function guideOf(name: string, markdown: string): Guide {
  const title = /^# (.+)$/m.exec(markdown)?.[1] ?? name
  const paragraph =
    markdown.split(/\n\s*\n/).find((block) => /^[A-Z`*"[]/.test(block) && !block.startsWith('```')) ?? ''
  const text = paragraph.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll(/\s+/g, ' ')
  return { name, title, summary: /^.*?\.(?= |$)/.exec(text)?.[0] ?? text, markdown }
}

/** The address of a link in the page `from`. Files that are not guides have none. Anchors are kept; links to other sites are unchanged. */
export function linkTarget(guides: ReadonlyMap<string, Guide>, from: string, href: string): string | undefined {
  if (/^(?:https?:|mailto:|#|\/)/.test(href)) return href
  const [file = '', anchor] = href.split('#')
  const place = path.posix.join('docs', path.posix.dirname(from))
  const resolved = path.posix.join(rootPages.includes(from) ? '' : place, file)
  const name = resolved.replace(/^docs\//, '').replace(/\.md$/, '')
  if (/^docs\/decisions\/?$/.test(resolved)) return '/docs/decisions'
  if (!resolved.endsWith('.md') || !guides.has(name)) return undefined
  return `/docs/${name}${anchor === undefined ? '' : `#${anchor}`}`
}
