import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

const root = path.resolve(import.meta.dirname, '../../..')
const source = path.resolve(import.meta.dirname, '../src')

/** Each `@example` as a module of its own, by a file name beside the tests. */
const examples: ReadonlyMap<string, string> = new Map(
  readdirSync(source, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('generated'))
    .flatMap((name) => {
      const blocks = readFileSync(path.join(source, name), 'utf8').match(/\* @example\n(?: *\*(?: .*)?\n)+/g) ?? []
      return blocks.map((block, index): [string, string] => [
        path.join(import.meta.dirname, `example-${name.replaceAll(/\W/g, '-')}-${index}.ts`),
        block
          .split('\n')
          .slice(1)
          .map((line) => line.replace(/^ *\* ?/, ''))
          .join('\n'),
      ])
    }),
)

/** Compiles the examples with the options of the project. Returns the errors. */
function compile(): readonly string[] {
  const config = ts.readConfigFile(path.join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, root)
  const host = ts.createCompilerHost({ ...options, noEmit: true })
  const { getSourceFile, fileExists, readFile } = host
  host.fileExists = (file) => examples.has(file) || fileExists(file)
  host.readFile = (file) => examples.get(file) ?? readFile(file)
  host.getSourceFile = (file, language, ...rest) => {
    const text = examples.get(file)
    return text === undefined ? getSourceFile(file, language, ...rest) : ts.createSourceFile(file, text, language)
  }
  const program = ts.createProgram([...examples.keys()], { ...options, noEmit: true }, host)
  return [...examples.keys()].flatMap((file) =>
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(file))
      .map(({ messageText }) => `${path.basename(file)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`),
  )
}

test('every example of the documentation compiles', () => {
  expect(examples.size).toBeGreaterThan(15)
  expect(compile()).toEqual([])
})
