/** The path of an operation in the form of the HTTP library: `/vaults/{id}` is `/vaults/:id`. */
export function urlOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}
