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
import path from 'node:path'
import { transformSync } from 'esbuild'
import ts from 'typescript'
import { pages } from './packages/mcp/src/documents.ts'
import { rootPages } from './packages/server/src/platform/http/guides/guides.ts'

const root = import.meta.dirname
const packages = path.join(root, 'packages')

type Json = Record<string, unknown>

/** What goes to npm: the oldest Node that runs it, and its programs besides those of the development manifest. */
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
 * Makes one publishable npm package of each published workspace, in the directory that `place` says, and answers the
 * directories; what was there before is gone. Tests and generators stay behind, and of the declarations only those
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
    for (const owner of names.filter((candidate) => candidate === name)) write(place(owner), path.join(...rest), text)
  }
  for (const name of names) finish(name, place(name))
  return names.map(place)
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
  return importingJs(
    transformSync(text, { loader: 'ts', target: `node${published[name].node}`, sourcefile: file, tsconfigRaw }).code,
  )
}

/** Every `./x.ts` that is imported becomes `./x.js`. TypeScript would do so for code, not for declarations. */
function importingJs(text: string): string {
  const endings = ts
    .preProcessFile(text)
    .importedFiles.filter(({ fileName }) => fileName.startsWith('.') && fileName.endsWith('.ts'))
    .map(({ fileName, pos }) => text.indexOf(fileName, pos) + fileName.length - '.ts'.length)
    // Modules that are augmented are listed after all that are imported, wherever they stand.
    .sort((left, right) => left - right)
  const from = [0, ...endings.map((ending) => ending + '.ts'.length)]
  return from.map((start, index) => text.slice(start, endings[index])).join('.js')
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
    written.set(target, importingJs(text))
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
    copyDashboard(dist)
    copyGuides(dist)
  }
  const files = readdirSync(dist).sort()
  for (const file of ['README.md', 'LICENSE']) {
    const found = [path.join(packages, name, file), path.join(root, file)].find((candidate) => existsSync(candidate))
    if (found !== undefined) cpSync(found, path.join(dist, file))
  }
  const manifest = publicManifest(name, files)
  for (const program of Object.values(recordOf(manifest.bin))) makeProgram(path.join(dist, String(program)))
  write(dist, 'package.json', `${JSON.stringify(manifest, null, 2)}\n`)
}

/** What agents read besides the tools. */
function copyGuide(dist: string): void {
  for (const { name } of pages) cpSync(path.join(root, 'docs', `${name}.md`), path.join(dist, 'docs', `${name}.md`))
  cpSync(path.join(root, 'openapi.json'), path.join(dist, 'openapi.json'))
}

/** The service serves it from beside its own code. Without one, `/dashboard` says how it is built. */
function copyDashboard(dist: string): void {
  const built = path.join(packages, 'dashboard', 'dist')
  if (existsSync(built)) cpSync(built, path.join(dist, 'dashboard'), { recursive: true })
}

/** The documentation that the service serves. */
function copyGuides(dist: string): void {
  cpSync(path.join(root, 'docs'), path.join(dist, 'guides', 'docs'), { recursive: true })
  for (const name of rootPages) cpSync(path.join(root, `${name}.md`), path.join(dist, 'guides', `${name}.md`))
}

function publicManifest(name: Name, files: readonly string[]): Json {
  const { private: _private, devDependencies: _devDependencies, exports, bin, ...kept } = readManifest(name)
  const compiled = (file: unknown) => compiledName(String(file).replace('./src/', './'))
  const entries = Object.entries(recordOf(exports)).map(([entry, file]) => [entry, conditions(compiled(file))])
  const bins = Object.entries({ ...recordOf(bin), ...published[name].programs }).map(([program, file]) => [
    program,
    compiled(file),
  ])
  return {
    ...kept,
    engines: { node: `>=${published[name].node}` },
    exports: { ...Object.fromEntries(entries), './package.json': './package.json' },
    ...(bins.length > 0 && { bin: Object.fromEntries(bins) }),
    files,
  }
}

/** `default` besides `import`, so that CommonJS can `require` it where Node allows that. */
function conditions(file: string): unknown {
  return file.endsWith('.js') ? { types: file.replace(/\.js$/, '.d.ts'), import: file, default: file } : file
}

/** npm starts a program by its first line. */
function makeProgram(file: string): void {
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.startsWith('#!') ? text : `#!/usr/bin/env node\n${text}`)
  chmodSync(file, 0o755)
}

const [directory] = process.argv.slice(2)
const place = (name: Name) =>
  directory === undefined ? path.join(packages, name, 'dist') : path.resolve(directory, name)
for (const dist of buildPackages(place)) console.log(path.relative(process.cwd(), dist))
