muster_add_conformance_test(NAME notes_conformance_test PLUGIN muster-plugin-notes
  TARGET conformance/target.yaml FIXTURES conformance/fixtures)
