import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { transformSync } from 'esbuild'
import ts from 'typescript'
import { pages } from './packages/mcp/src/documents.ts'
import { rootPages } from './packages/server/src/platform/http/guides/guides.ts'

const root = import.meta.dirname
const packages = path.join(root, 'packages')

type Json = Record<string, unknown>

/** The packages for npm: the oldest Node that runs it, and its programs besides those of the development manifest. */
const published = {
  protocol: { node: 20, programs: {} },
  sdk: { node: 20, programs: {} },
  cli: { node: 20, programs: {} },
  mcp: { node: 20, programs: {} },
  server: { node: 24, programs: { 'purser-serve': './src/main.ts' } },
}

type Name = keyof typeof published

const names = ['protocol', 'sdk', 'cli', 'mcp', 'server'] as const satisfies readonly Name[]

/**
 * Makes one publishable npm package of each published workspace, in the directory `place`, and returns the
 * directories. Earlier content is deleted. Tests and generators stay behind, and of the declarations only those
 * that an entry reaches are written. The output is reproducible. Types are checked by `npm run check:types`, not
 * here.
 */
function buildPackages(place: (name: Name) => string): readonly string[] {
  for (const name of names) {
    rmSync(place(name), { recursive: true, force: true })
    for (const file of sourcesOf(name)) write(place(name), compiledName(file), transpile(name, file))
  }
  for (const [file, text] of declarations()) {
    const [name = '', , ...rest] = path.relative(packages, file).split(path.sep)
    for (const owner of names.filter((candidate) => candidate === name)) {
      const target = path.join(...rest)
      write(place(owner), target, importing('.js', text))
      write(place(owner), target.replace(/\.ts$/, '.cts'), importing('.cjs', text))
    }
  }
  for (const name of names) finish(name, place(name))
  for (const name of names) bundleSiblings(name, place)
  return names.map(place)
}

/**
 * Copies the siblings that a package needs, and what they need from npm, into its `node_modules`. `npm pack` takes
 * them along, so that its tarball installs by itself and never meets another version of a sibling.
 */
function bundleSiblings(name: Name, place: (name: Name) => string): void {
  const siblings = siblingsOf(name)
  if (siblings.length === 0) return
  const dist = place(name)
  const manifest = recordOf(JSON.parse(readFileSync(path.join(dist, 'package.json'), 'utf8')))
  const own = recordOf(manifest.dependencies)
  const bundled = new Set(siblings.map((sibling) => `@purser/${sibling}`))
  for (const sibling of siblings) copySibling(place(sibling), path.join(dist, 'node_modules', '@purser', sibling))
  for (const [dependency, version] of siblings.flatMap((sibling) => Object.entries(dependenciesOf(sibling)))) {
    if (bundled.has(dependency) || dependency in own) continue
    bundled.add(dependency)
    own[dependency] = version
    copyDependency(siblings, dependency, path.join(dist, 'node_modules', dependency))
  }
  const bundleDependencies = [...bundled]
  write(dist, 'package.json', `${JSON.stringify({ ...manifest, dependencies: own, bundleDependencies }, null, 2)}\n`)
}

/** The workspaces that a package imports, and those that they import. */
function siblingsOf(name: Name): readonly Name[] {
  const direct = names.filter((other) => `@purser/${other}` in dependenciesOf(name))
  return [...new Set(direct.flatMap((sibling) => [sibling, ...siblingsOf(sibling)]))]
}

function dependenciesOf(name: Name): Json {
  return recordOf(readManifest(name).dependencies)
}

function copySibling(from: string, to: string): void {
  const skipped = path.join(from, 'node_modules')
  cpSync(from, to, { recursive: true, filter: (file) => file !== skipped })
  const { bundleDependencies: _bundled, ...manifest } = recordOf(
    JSON.parse(readFileSync(path.join(to, 'package.json'), 'utf8')),
  )
  write(to, 'package.json', `${JSON.stringify(manifest, null, 2)}\n`)
}

/** Copies what runs, without the package's sources and source maps. */
function copyDependency(importers: readonly Name[], dependency: string, to: string): void {
  const from = importers
    .flatMap((name) => createRequire(path.join(packages, name, 'package.json')).resolve.paths(dependency) ?? [])
    .map((directory) => path.join(directory, dependency))
    .find((directory) => existsSync(directory))
  if (from === undefined) throw new Error(`${dependency} is not installed`)
  const isLeftOut = (file: string) => file === path.join(from, 'src') || file.endsWith('.map')
  cpSync(from, to, { recursive: true, dereference: true, filter: (file) => !isLeftOut(file) })
}

const sourceOf = (name: Name): string => path.join(packages, name, 'src')

const compiledName = (file: string): string => file.replace(/\.ts$/, '.js')

function sourcesOf(name: Name): readonly string[] {
  return globSync('**/*.ts', { cwd: sourceOf(name), exclude: ['**/*.test.ts', '**/print-*.ts'] }).sort()
}

function write(directory: string, file: string, text: string): void {
  const target = path.join(directory, file)
  mkdirSync(path.dirname(target), { recursive: true })
  writeFileSync(target, text)
}

function compilerOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(path.join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(
    { ...recordOf(config), include: [], files: ['build.ts'] },
    ts.sys,
    root,
  )
  return {
    ...options,
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    noCheck: true,
    newLine: ts.NewLineKind.LineFeed,
  }
}

function transpile(name: Name, file: string): string {
  const text = readFileSync(path.join(sourceOf(name), file), 'utf8')
  const tsconfigRaw = { compilerOptions: { verbatimModuleSyntax: true } }
  return importing(
    '.js',
    transformSync(text, { loader: 'ts', target: `node${published[name].node}`, sourcefile: file, tsconfigRaw }).code,
  )
}

/** Every `./x.ts` that is imported gets another ending. TypeScript would do so for code, not for declarations. */
function importing(ending: '.js' | '.cjs', text: string): string {
  const endings = ts
    .preProcessFile(text)
    .importedFiles.filter(({ fileName }) => fileName.startsWith('.') && fileName.endsWith('.ts'))
    .map(({ fileName, pos }) => text.indexOf(fileName, pos) + fileName.length - '.ts'.length)
    // Modules that are augmented are listed after all that are imported, wherever they stand.
    .sort((left, right) => left - right)
  const from = [0, ...endings.map((ending) => ending + '.ts'.length)]
  return from.map((start, index) => text.slice(start, endings[index])).join(ending)
}

/** Declarations by the path that each would have beside its source: those of the entries, and all that they import. */
function declarations(): ReadonlyMap<string, string> {
  const program = ts.createProgram(
    names.flatMap((name) => sourcesOf(name).map((file) => path.join(sourceOf(name), file))),
    compilerOptions(),
  )
  const written = new Map<string, string>()
  const waiting = names.flatMap(entriesOf)
  for (const file of waiting) {
    const target = file.replace(/\.ts$/, '.d.ts')
    if (written.has(target)) continue
    const text = declarationOf(program, file)
    written.set(target, text)
    for (const { fileName } of ts.preProcessFile(text).importedFiles) {
      if (fileName.startsWith('.')) waiting.push(path.resolve(path.dirname(file), fileName))
    }
  }
  return written
}

function declarationOf(program: ts.Program, file: string): string {
  const texts: string[] = []
  const { diagnostics } = program.emit(program.getSourceFile(file), (_name, text) => texts.push(text), undefined, true)
  const [text] = texts
  if (text === undefined || diagnostics.length > 0) {
    const faults = diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
    throw new Error([`${path.relative(root, file)} has no declaration`, ...faults].join('\n'))
  }
  return text
}

function entriesOf(name: Name): string[] {
  return Object.values(recordOf(readManifest(name).exports))
    .map(String)
    .filter((file) => file.endsWith('.ts'))
    .map((file) => path.join(packages, name, file))
}

function recordOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function readManifest(name: Name): Json {
  return recordOf(JSON.parse(readFileSync(path.join(packages, name, 'package.json'), 'utf8')))
}

/** Copies files that are read at run time next to the compiled files, as in the source, then the manifest. */
function finish(name: Name, dist: string): void {
  for (const file of globSync('**/*.{json,sql}', { cwd: sourceOf(name) })) {
    cpSync(path.join(sourceOf(name), file), path.join(dist, file))
  }
  if (name === 'mcp') copyGuide(dist)
  if (name === 'server') {
    copyBuilt('dashboard', dist)
    copyBuilt('reference', dist)
    copyGuides(dist)
  }
  const files = readdirSync(dist).sort()
  for (const file of ['README.md', 'LICENSE']) {
    const found = [path.join(packages, name, file), path.join(root, file)].find((candidate) => existsSync(candidate))
    if (found !== undefined) cpSync(found, path.join(dist, file))
  }
  const manifest = publicManifest(name, files)
  for (const [program, file] of programsOf(name)) makeProgram(path.join(dist, 'bin', `${program}.js`), { name, file })
  write(dist, 'package.json', `${JSON.stringify(manifest, null, 2)}\n`)
}

/** The guide that agents read besides the tools. */
function copyGuide(dist: string): void {
  for (const { name } of pages) cpSync(path.join(root, 'docs', `${name}.md`), path.join(dist, 'docs', `${name}.md`))
  cpSync(path.join(root, 'openapi.json'), path.join(dist, 'openapi.json'))
}

/** The service serves it from beside its own code. Without it, `/dashboard` says how it is built, and the reference is the one without scripts. */
function copyBuilt(workspace: 'dashboard' | 'reference', dist: string): void {
  const built = path.join(packages, workspace, 'dist')
  if (existsSync(built)) cpSync(built, path.join(dist, workspace), { recursive: true })
}

/** The documentation that the service serves. */
function copyGuides(dist: string): void {
  cpSync(path.join(root, 'docs'), path.join(dist, 'guides', 'docs'), { recursive: true })
  for (const name of rootPages) cpSync(path.join(root, `${name}.md`), path.join(dist, 'guides', `${name}.md`))
}

function publicManifest(name: Name, files: readonly string[]): Json {
  const {
    private: _private,
    devDependencies: _dev,
    scripts: _scripts,
    exports,
    bin: _bin,
    ...kept
  } = readManifest(name)
  const compiled = (file: unknown) => compiledName(String(file).replace('./src/', './'))
  const entries = Object.entries(recordOf(exports)).map(([entry, file]) => [entry, conditions(compiled(file))])
  const bins = programsOf(name).map(([program]) => [program, `./bin/${program}.js`])
  return {
    ...kept,
    engines: { node: `>=${published[name].node}` },
    exports: { ...Object.fromEntries(entries), './package.json': './package.json' },
    ...(bins.length > 0 && { bin: Object.fromEntries(bins) }),
    files: [...files, ...(bins.length > 0 ? ['bin'] : [])],
  }
}

/** By name, the source file of each program. */
function programsOf(name: Name): readonly (readonly [string, string])[] {
  const bin = { ...recordOf(readManifest(name).bin), ...published[name].programs }
  return Object.entries(bin).map(([program, file]) => [program, String(file)])
}

/**
 * The types of CommonJS besides those of modules. The code is the module in both cases, which Node 20.19 and newer can
 * `require`, so that a process never has two copies of a class.
 */
function conditions(file: string): unknown {
  if (!file.endsWith('.js')) return file
  const types = file.replace(/\.js$/, '.d.ts')
  const required = { types: types.replace(/\.ts$/, '.cts'), default: file }
  return { import: { types, default: file }, require: required, default: file }
}

/** Writes what npm starts: it compares the version of Node before an older one meets syntax that it cannot read. */
function makeProgram(target: string, { name, file }: { readonly name: Name; readonly file: string }): void {
  const least = published[name].node
  const program = path.basename(target, '.js')
  write(
    path.dirname(target),
    path.basename(target),
    `#!/usr/bin/env node
if (Number.parseInt(process.versions.node, 10) >= ${least}) {
  await import('..${compiledName(file).replace('./src', '')}')
} else {
  process.stderr.write(\`${program} needs Node ${least} or newer. This is Node \${process.versions.node}.\\n\`)
  process.exitCode = 1
}
`,
  )
  chmodSync(target, 0o755)
}

const [directory] = process.argv.slice(2)
const place = (name: Name) =>
  directory === undefined ? path.join(packages, name, 'dist') : path.resolve(directory, name)
for (const dist of buildPackages(place)) console.log(path.relative(process.cwd(), dist))
