mod recorded;
#[test] fn x(){}
