import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript'

const root = import.meta.dirname

type Json = Record<string, unknown>

interface Published {
  readonly name: string
  readonly node: string
  /** Programs besides those that the development manifest names, as npm's `bin` would have them. */
  readonly programs?: Readonly<Record<string, string>>
}

/** What goes to npm, in the order in which they need each other. */
const published: readonly Published[] = [
  { name: 'protocol', node: '>=20' },
  { name: 'sdk', node: '>=20' },
  { name: 'server', node: '>=24', programs: { 'purser-serve': './src/main.ts' } },
]

/**
 * Makes one publishable npm package of each published workspace, and answers their directories. Only what an entry of the
 * manifest reaches is compiled, so no test and no generator gets out; a type error stops the build before a file is
 * written. The same sources give the same bytes.
 */
export function buildPackages(target: (name: string) => string): readonly string[] {
  const sources = published.map((entry) => ({ ...entry, manifest: readManifest(entry) }))
  const output = compile(sources.flatMap(({ name, manifest }) => entriesOf(name, manifest)))
  return sources.map(({ name, manifest }) => {
    const dist = target(name)
    rmSync(dist, { recursive: true, force: true })
    writeCode(output, sourceOf(name), dist)
    copyAssets(name, dist)
    const programs = Object.values(recordOf(manifest.bin)).map(String)
    for (const program of programs) makeProgram(path.join(dist, program.replace('./src/', '').replace(/\.ts$/, '.js')))
    const files = readdirSync(dist).filter((file) => !/^(README\.md|LICENSE)$/.test(file))
    writeFileSync(
      path.join(dist, 'package.json'),
      `${JSON.stringify(publicManifest(manifest, files.sort()), null, 2)}\n`,
    )
    return dist
  })
}

const sourceOf = (name: string): string => path.join(root, 'packages', name, 'src')

function recordOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function readManifest({ name, node, programs }: Published): Json {
  const manifest = recordOf(JSON.parse(readFileSync(path.join(root, 'packages', name, 'package.json'), 'utf8')))
  const bin = { ...recordOf(manifest.bin), ...programs }
  return { ...manifest, ...(Object.keys(bin).length > 0 && { bin }), engines: { node } }
}

function entriesOf(name: string, manifest: Json): string[] {
  return [...Object.values(recordOf(manifest.exports)), ...Object.values(recordOf(manifest.bin))]
    .map(String)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => path.join(root, 'packages', name, file))
}

/** Compiled text by the path that it would have beside its source. */
function compile(entries: readonly string[]): ReadonlyMap<string, string> {
  const parsed = ts.parseJsonConfigFileContent(
    { extends: './tsconfig.json', files: entries, include: [] },
    ts.sys,
    root,
    {
      noEmit: false,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      noEmitOnError: true,
      newLine: ts.NewLineKind.LineFeed,
    },
  )
  const program = ts.createProgram(parsed.fileNames, parsed.options)
  const faults = [...parsed.errors, ...ts.getPreEmitDiagnostics(program)]
  if (faults.length > 0) {
    throw new Error(
      ts.formatDiagnostics(faults, {
        getCurrentDirectory: () => root,
        getCanonicalFileName: (name) => name,
        getNewLine: () => '\n',
      }),
    )
  }
  const output = new Map<string, string>()
  program.emit(undefined, (file, text) => output.set(path.resolve(file), text))
  return output
}

function writeCode(output: ReadonlyMap<string, string>, source: string, dist: string): void {
  for (const [file, text] of output) {
    const relative = path.relative(source, file)
    if (relative.startsWith('..')) continue
    mkdirSync(path.dirname(path.join(dist, relative)), { recursive: true })
    writeFileSync(path.join(dist, relative), text)
  }
}

/** What is read at run time stands where the code looks for it: beside the compiled file, as beside the source. */
function copyAssets(name: string, dist: string): void {
  for (const file of globSync('**/*.{json,sql}', { cwd: sourceOf(name) })) {
    cpSync(path.join(sourceOf(name), file), path.join(dist, file))
  }
  for (const file of ['README.md', 'LICENSE']) {
    const place = [path.join(root, 'packages', name, file), path.join(root, file)].find((candidate) =>
      existsSync(candidate),
    )
    if (place !== undefined) cpSync(place, path.join(dist, file))
  }
}

/** npm runs a program by its first line. */
function makeProgram(file: string): void {
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.startsWith('#!') ? text : `#!/usr/bin/env node\n${text}`, { mode: 0o755 })
}

function publicManifest(manifest: Json, files: readonly string[]): Json {
  const { private: _private, devDependencies: _devDependencies, scripts: _scripts, exports, bin, ...kept } = manifest
  const compiled = (file: unknown) => String(file).replace('./src/', './')
  const entries = Object.entries(recordOf(exports)).map(([name, file]) => [name, conditions(compiled(file))])
  const programs = Object.entries(recordOf(bin)).map(([name, file]) => [name, compiled(file).replace(/\.ts$/, '.js')])
  return {
    ...kept,
    exports: { ...Object.fromEntries(entries), './package.json': './package.json' },
    ...(programs.length > 0 && { bin: Object.fromEntries(programs) }),
    files,
  }
}

function conditions(file: string): unknown {
  if (!file.endsWith('.ts')) return file
  const stem = file.slice(0, -'.ts'.length)
  return { types: `${stem}.d.ts`, import: `${stem}.js`, default: `${stem}.js` }
}

if (import.meta.main) {
  for (const dist of buildPackages((name) => path.join(root, 'packages', name, 'dist')))
    console.log(path.relative(root, dist))
}
