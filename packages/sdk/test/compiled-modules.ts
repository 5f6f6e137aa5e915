import path from 'node:path'
import ts from 'typescript'

const root = path.resolve(import.meta.dirname, '../../..')

interface CompiledWith {
  /** Further files of the program. */
  readonly entries?: readonly string[]
  /** Beside those of the project. */
  readonly options?: ts.CompilerOptions
}

/** Compiles modules that exist in memory only, by the file names that they would have, with the options of the project. */
export function compiledModules(
  modules: ReadonlyMap<string, string>,
  { entries = [], options: more = {} }: CompiledWith,
): { readonly program: ts.Program; readonly errors: readonly string[] } {
  const config = ts.readConfigFile(path.join(root, 'tsconfig.json'), ts.sys.readFile)
  const options = { ...ts.parseJsonConfigFileContent(config.config, ts.sys, root).options, ...more, noEmit: true }
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists, readFile } = host
  host.fileExists = (file) => modules.has(file) || fileExists(file)
  host.readFile = (file) => modules.get(file) ?? readFile(file)
  host.getSourceFile = (file, language, ...rest) => {
    const text = modules.get(file)
    return text === undefined ? getSourceFile(file, language, ...rest) : ts.createSourceFile(file, text, language)
  }
  const program = ts.createProgram([...modules.keys(), ...entries], options, host)
  const errors = [...modules.keys()].flatMap((file) =>
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(file))
      .map(({ messageText }) => `${path.basename(file)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`),
  )
  return { program, errors }
}
