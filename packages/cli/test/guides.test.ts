/** The commands of `purser` and `purser-admin` in the guides: each exists, with the options that it is given. */

import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { devCommands } from '../../devnet/src/dev-program.ts'
import { commands as adminCommands } from '../../server/src/admin/commands.ts'
import { commands } from '../src/commands.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const pages = globSync(['README.md', 'docs/*.md', 'packages/*/README.md'], { cwd: root }).sort()

interface Line {
  readonly page: string
  readonly text: string
}

/** Lines of shell blocks, and code within sentences, without their comments. */
const lines: readonly Line[] = pages.flatMap((page) => {
  const text = readFileSync(path.join(root, page), 'utf8')
  const inBlocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, code = '']) => code.split('\n'))
  const inSentences = [...text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/`([^`]+)`/g)].map(
    ([, code = '']) => code,
  )
  return [...inBlocks, ...inSentences].map((line) => ({
    page,
    text: line.replace(/\s+#.*$/, '').replaceAll(/\s+/g, ' '),
  }))
})

const called = lines.flatMap(({ page, text }) => {
  const [, rest] = /^(?:npx )?purser(?:-admin)? (.+)$/.exec(text) ?? []
  const isAdmin = /^(?:npx )?purser(?:-admin | admin | migrate\b| keys )/.test(text)
  return rest === undefined || /^(?:admin|wallets …|keys …|is up)$|…\)/.test(rest)
    ? []
    : [{ page, text, isAdmin, words: rest.replace(/^admin /, '').split(' ') }]
})

const serveOptions = ['role']

interface Known {
  readonly name: string
  readonly options: Readonly<Record<string, unknown>>
}

function faultOf({ text, isAdmin, words }: (typeof called)[number]): string[] {
  if (['help', 'serve', '--help', '…', '<command>'].includes(words[0] ?? '')) return []
  const known: readonly Known[] = isAdmin ? adminCommands : [...commands, ...devCommands]
  const meant = known
    .filter(({ name }) => name.split(' ').every((word, index) => words[index] === word))
    .toSorted((left, right) => right.name.length - left.name.length)[0]
  if (meant === undefined) {
    const isGroup = known.some(({ name }) => name.startsWith(`${words.join(' ')} `))
    return isGroup ? [] : [`${text}: no such command`]
  }
  const options = [...text.matchAll(/(?<= )--([a-z-]+)/g)].map(([, option = '']) => option)
  const all = [...Object.keys(meant.options), ...serveOptions, 'help', 'format']
  return options.filter((option) => !all.includes(option)).map((option) => `${text}: no option --${option}`)
}

test('every command of a guide exists, with its options', () => {
  expect(called.length).toBeGreaterThan(50)
  expect(called.flatMap((one) => faultOf(one).map((fault) => `${one.page}: ${fault}`))).toEqual([])
})

test('every script that a guide runs exists', () => {
  const scripts = Object.keys(JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).scripts)
  const named = lines.flatMap(({ page, text }) =>
    [...text.matchAll(/npm run ([\w:-]+)(?! -w)/g)].map(([, script = '']) => ({ page, script })),
  )
  expect(named.length).toBeGreaterThan(15)
  expect(named.filter(({ script }) => !scripts.includes(script))).toEqual([])
})
