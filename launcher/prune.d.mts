/** Removes files of packages that nothing on this machine can use; returns the removed paths. */
export const pruneModules: (
  modules: string,
  machine?: { readonly platform: string; readonly arch: string },
) => ReadonlyArray<string>
