import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')

/** Words that docs/GLOSSARY.md replaces. They are not used anywhere, not even as a part of a name (`oftenAsked`, `last_asked`). */
const banned =
  /\b(?:told|asked|said|lapsed|weigh(?:ed|s|ing)?|nudged?|gather(?:s|ed|ing)?|overtaken|displaced|room|doors?|pac(?:e|ed|es|ing)|he|his|him)\b/gi

/** Spellings that docs/GLOSSARY.md replaces, in prose and in names. `organisation` is spelled as in the API. */
const bannedSpellings =
  /\b(?:organizations?|(?:mark|notify|on)?reorganis\w*|authoris\w*|(?:normal|recogn|summar)is(?:ed|er|es|ing)|summariseLogs|for (?:ever|good))\b/gi

/** `A is of no B` says that A is not the id of a B, and reads as if A had none. `The previous version` has a noun. */
const bannedPhrases = /\bis of no (?!use\b)\w+|\b(?:version|release) before\b/gi

/** Names of responses. A person, a node or a partner may answer in prose. */
const bannedNames =
  /\b(?:Raw|Stored|Rpc|Partner|Outbound|problem|success|secret|preflight)Answers?\b|\banswerHeaders?\b|\/(?:\w+-)?answers?\.ts\b/g

/** Names that docs/GLOSSARY.md replaces: a slot, a share owner, the limit on releases, the eviction of open payments. */
const bannedTerms =
  /\b(?:nextLook\w*|placeOwner\w*|waitForPlace|giveWay|givingWay\w*|(?:list)?InTheWay|inTheWayOf|\w*WithoutPlace|HeldPlace|judge(?:Credential|Payment))\b/g

/** `held` is a status of the API and may be a name. In prose it has too many meanings. */
const bannedInProse = /\bheld\b/gi

/** A docstring that explains itself by the one before it. */
const riddle = /\/\*\*[\s*]+The same\b/g

/** A docstring that is a question without its answer: `What a wallet has` are its balances, `How long it waits` a number of milliseconds. */
const questions = /(?:\/\*\*[\s*]+|"""\s*)(?:How|What|When|Where|Which|Who|Whom|Whose|Why)\b/g

/** Where the words may occur, and why. */
const allowed: readonly (readonly [place: RegExp, words: RegExp, reason: string])[] = [
  [/^packages\/server\/test\/words\.test\.ts$/, /./, 'This test lists the words.'],
  [/^docs\/GLOSSARY\.md$/, /./, 'The glossary lists the words.'],
  [/^docs\/decisions\/0322-/, /./, 'The decision lists the names that it replaced.'],
  [/^docs\/errors\.md$/, /^held$/, 'The name of a member of an error.'],
  [
    /^packages\/server\/(?:src\/features\/payments\/|test\/)|^bench\/growth-fill\.ts$/,
    /^door$/,
    'A column of a released migration.',
  ],
  [/gasless\/migration\.test\.ts$/, /^authorised$/, 'A purpose of transactions of a released version.'],
  [
    /^packages\/server\/(?:src\/features\/payments\/caller-store|test\/sweep-batches\.test)\.ts$/,
    /^asked$/i,
    'A column of a released migration.',
  ],
]

/** Names on the wire, which stay. */
const wireNames = /payout-lapsed/g

interface SourceFile {
  readonly name: string
  readonly text: string
}

/** All TypeScript, Python and Markdown files of the project, without generated code. */
const files: readonly SourceFile[] = [
  ...readdirSync(root).filter((name) => !name.startsWith('.') && statSync(path.join(root, name)).isFile()),
  ...['bench', 'docs', 'packages/python/tests', ...folders()].flatMap((folder) => filesIn(folder)),
  'packages/python/generate.py',
]
  .filter((name) => /\.(?:ts|tsx|md|py)$/.test(name) && !/(?:^|\/)(?:generated|node_modules|dist)\//.test(name))
  .filter((name) => !/\/purser\/(?:models|operations)\.py$/.test(name))
  .map((name) => ({ name, text: readFileSync(path.join(root, name), 'utf8') }))

function folders(): readonly string[] {
  return readdirSync(path.join(root, 'packages')).flatMap((name) => [`packages/${name}/src`, `packages/${name}/test`])
}

function filesIn(folder: string): readonly string[] {
  const names = readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
  return names.map((name) => `${folder}/${name.split(path.sep).join('/')}`)
}

function isTest({ name }: SourceFile): boolean {
  return /\/tests?\/|\.test\.ts$/.test(name)
}

/** Comments, docstrings and test titles of code; of Markdown everything outside backquotes. */
function proseOf({ name, text }: SourceFile): string {
  if (name.endsWith('.md')) return text.replace(/```[\s\S]*?```|`[^`\n]*`/g, '')
  const comments = text.match(/\/\*\*[\s\S]*?\*\/|"""[\s\S]*?"""|(?<=^|\s)(?:\/\/|#).*$/gm) ?? []
  const titles = text.match(/\b(?:test|describe)\((['"`]).*?\1/g) ?? []
  return [...comments, ...titles].join('\n').replace(/`[^`\n]*`/g, '')
}

/** The text with names split into their words: `oftenAsked` and `often_asked` become `often Asked` and `often asked`. */
function splitNames(text: string): string {
  return text.replace(/([a-z0-9])(?=[A-Z])/g, '$1 ').replaceAll('_', ' ')
}

function hitsIn(file: SourceFile): readonly string[] {
  const words = [
    ...(splitNames(file.text.replace(wireNames, '')).match(banned) ?? []),
    ...(file.text.match(bannedSpellings) ?? []),
    ...(file.text.match(bannedPhrases) ?? []),
    ...(file.text.match(bannedNames) ?? []),
    ...(file.text.match(bannedTerms) ?? []),
    ...(proseOf(file).match(bannedInProse) ?? []),
    ...(file.text.match(riddle) ?? []).map(() => 'The same'),
    ...(isTest(file) ? [] : (file.text.match(questions) ?? [])).map((found) => found.replace(/\W/g, '')),
  ]
  const refused = words.filter((word) => !allowed.some(([place, may]) => place.test(file.name) && may.test(word)))
  return refused.map((word) => `${file.name}: ${word}`)
}

test('code and documentation use the words of the glossary', () => {
  expect(files.length).toBeGreaterThan(1_000)
  expect(files.flatMap(hitsIn)).toEqual([])
})

test.each([
  ['// The node is asked once.', 'asked'],
  ['/** Rows held by a transaction. */', 'held'],
  ['/**\n * The same for Fastify.\n */', 'The same'],
  ["const said = await node.call('eth_call')", 'said'],
  ['/** What a wallet has. */', 'What'],
  ['"""Who may sign in."""', 'Who'],
  ['/** How long a lease lasts. */', 'How'],
  ['/**\n * When it expires.\n */', 'When'],
  ['/** Where the files are. */', 'Where'],
  ['/** Which events it gets. */', 'Which'],
  ['/** Why a key is refused. */', 'Why'],
  ['/** The keys of an organization. */', 'organization'],
  ['const text = normalised(value)', 'normalised'],
  ['const door = payment', 'door'],
  ["const causes = ['The id in the path is of no payment.']", 'is of no payment'],
  ['The row stays for ever.', 'for ever'],
  ['// A process of the version before writes it.', 'version before'],
  ['await chain.onReorganised(block)', 'onReorganised'],
  ["purpose: 'transfers.authorised'", 'authorised'],
  ['Reads at its own pace.', 'pace'],
  ['const ready = oftenAsked(run)', 'Asked'],
  ['select has_room from wallets', 'room'],
  ['const sent: RawAnswer = page', 'RawAnswer'],
  ["import { textOf } from './live-answer.ts'", '/live-answer.ts'],
  ['const owner = ctx.placeOwner', 'placeOwner'],
])('%j is found', (text, word) => {
  expect(hitsIn({ name: 'packages/server/src/example.ts', text })).toEqual([`packages/server/src/example.ts: ${word}`])
})

test.each([
  'a reorganization of an organisation',
  "status: 'held'",
  '/** `held` is on hold. */',
  "reason: 'payout-lapsed'",
  'the',
])('%j is allowed', (text) => {
  expect(hitsIn({ name: 'packages/server/src/example.ts', text })).toEqual([])
})
